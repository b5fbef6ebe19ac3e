"""What cannot be done is refused by name, with cause and remedy."""


class Refused(RuntimeError):
    def __init__(self, what: str, cause: str, remedy: str):
        super().__init__(f"{what}: {cause}. Remedy: {remedy}.")
