"""The error with which the command line ends."""


class MinicloudError(Exception):
    """One clear sentence for the user.

    ``detail`` may contain the end of a log and is printed below it.
    """

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail
