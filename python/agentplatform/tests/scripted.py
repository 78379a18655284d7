"""What the tests of both frameworks have in common."""

import os

import pytest

from agentplatform import CodeInterpreter

needs_platform = pytest.mark.skipif("AWS_ENDPOINT_URL" not in os.environ, reason="no platform to talk to")

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

SHOW = f"from IPython.display import display, Image\nimport base64\ndisplay(Image(base64.b64decode('{PICTURE}')))\nprint('shown')"

#: What the model in the place of a real one calls, in this order.
CALLS = [
    ("write_files", {"files": [{"path": "numbers.txt", "text": "3\n4"}]}),
    ("execute_code", {"code": "sum(int(line) for line in open('numbers.txt'))"}),
    ("execute_code", {"code": "const n: number = 5; n + 1", "language": "typescript"}),
    ("execute_command", {"command": "wc -c < numbers.txt"}),
    ("read_files", {"paths": ["numbers.txt"]}),
    ("list_files", {}),
    ("execute_code", {"code": SHOW}),
    ("execute_code", {"code": "1 / 0"}),
    ("execute_code", {"code": "print('y' * 100_000)"}),
]


def check(seen):
    """`seen`: a (text, pictures, failed) for each of CALLS."""
    assert [text for text, _, _ in seen[:6]] == [
        "Wrote numbers.txt (3 bytes).",
        "7",
        "6",
        "3",
        "numbers.txt:\n3\n4",
        "numbers.txt (3 bytes)",
    ]
    assert [failed for _, _, failed in seen] == [False] * 7 + [True, False]
    assert seen[6][1] == [PICTURE]
    assert "shown" in seen[6][0]
    assert "ZeroDivisionError" in seen[7][0]
    assert len(seen[8][0]) < 31_000 and "characters are left out" in seen[8][0]


@pytest.fixture(scope="module")
def interpreter():
    with CodeInterpreter(os.environ.get("AWS_REGION")) as opened:
        yield opened
