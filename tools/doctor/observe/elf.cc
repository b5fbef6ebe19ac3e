#include "tools/doctor/observe/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace npu::doctor {
namespace {

// A file mapped for reading; every access is checked against its size, since broken installs have cut files.
class Mapped {
 public:
  explicit Mapped(const std::filesystem::path& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts {};
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      size_ = static_cast<size_t>(facts.st_size);
      void* at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      data_ = at == MAP_FAILED ? nullptr : static_cast<const char*>(at);
    }
    if (fd >= 0) close(fd);
  }
  ~Mapped() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  template <class T>
  bool Read(uint64_t at, T& value) const {
    if (!data_ || at > size_ || size_ - at < sizeof(T)) return false;
    std::memcpy(&value, data_ + at, sizeof(T));
    return true;
  }
  std::string Text(uint64_t at) const {
    if (!data_ || at >= size_) return {};
    return std::string(data_ + at, strnlen(data_ + at, size_ - at));
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

bool ReadHeader(const Mapped& file, Elf64_Ehdr& header) {
  return file.Read(0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

}  // namespace

uint16_t ElfMachine(const std::filesystem::path& file) {
  Elf64_Ehdr header{};
  return ReadHeader(Mapped(file), header) ? header.e_machine : 0;
}

uint16_t MachineNumber(const std::string& uname) {
  return uname == "x86_64" ? EM_X86_64 : uname == "aarch64" ? EM_AARCH64 : 0;
}

std::string MachineName(uint16_t machine) {
  if (machine == EM_X86_64) return "x86_64";
  if (machine == EM_AARCH64) return "aarch64";
  return fmt::format("machine {}", machine);
}

std::set<std::string> ElfSymbols(const std::filesystem::path& path, const std::string& prefix, bool wanted) {
  std::set<std::string> names;
  const Mapped file(path);
  Elf64_Ehdr header{};
  if (!ReadHeader(file, header)) return names;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{}, strings{};
    if (!file.Read(header.e_shoff + uint64_t{i} * header.e_shentsize, section) || section.sh_type != SHT_DYNSYM)
      continue;
    if (!file.Read(header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize, strings)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      if (!file.Read(section.sh_offset + at, symbol)) break;
      const bool undefined = symbol.st_shndx == SHN_UNDEF;
      if (undefined != wanted || (wanted && ELF64_ST_BIND(symbol.st_info) == STB_WEAK)) continue;
      std::string name = file.Text(strings.sh_offset + symbol.st_name);
      if (name.starts_with(prefix)) names.insert(std::move(name));
    }
  }
  return names;
}

}  // namespace npu::doctor
