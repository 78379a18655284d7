"""What a caller did that cannot be done, told to the platform in a few kinds."""


class Problem(Exception):
    """`kind`: invalid, not-found, too-large, busy, no-space."""

    STATUS = {"invalid": 400, "not-found": 404, "too-large": 413, "busy": 429, "no-space": 507}

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind

    @property
    def status(self):
        return self.STATUS[self.kind]
