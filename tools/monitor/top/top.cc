#include "tools/monitor/top/top.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace npu::monitor {
namespace {

volatile sig_atomic_t ended = 0;
void End(int) { ended = 1; }

// The terminal as it was, however the program ends.
class Terminal {
 public:
  Terminal() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    Write("\x1b[?1049h\x1b[?25l");  // a screen of its own, no cursor
  }
  ~Terminal() {
    Write("\x1b[?25h\x1b[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  static void Write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

 private:
  termios before_{};
};

winsize Size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  return size;
}

}  // namespace

int Top(Source& source, const TopOptions& options) {
  Screen screen;
  using Clock = std::chrono::steady_clock;
  const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval_s));
  if (options.once || isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) {
    screen.Add(*source.Now(), 0);
    for (const std::string& line : screen.Draw(200, 0, false)) std::puts(line.c_str());
    return 0;
  }
  struct sigaction action {};
  action.sa_handler = End;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  action.sa_handler = [](int) {};
  sigaction(SIGWINCH, &action, nullptr);  // only to wake
  const Terminal terminal;
  auto last = Clock::now();
  bool first = true;
  while (ended == 0) {
    const auto now = Clock::now();
    screen.Add(*source.Now(), first ? 0 : std::chrono::duration<double>(now - last).count());
    last = now;
    first = false;
    const auto until = now + pause;
    do {
      const winsize size = Size();
      std::string picture = "\x1b[H";
      for (const std::string& line : screen.Draw(size.ws_col, size.ws_row - 1, true)) picture += line + "\x1b[K\n";
      Terminal::Write(picture + "\x1b[J\x1b[2mq quits\x1b[0m");
      struct pollfd keys {
        STDIN_FILENO, POLLIN, 0
      };
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      const int got = poll(&keys, 1, static_cast<int>(std::max<long long>(left, 0)));
      if (got <= 0) continue;  // time is up, or a signal: a new size is drawn at once
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return 0;
    } while (ended == 0 && Clock::now() < until);
  }
  return 0;
}

}  // namespace npu::monitor
