"""The client against a real platform, which `AWS_ENDPOINT_URL` names; skipped without one."""

import hashlib
import os

import boto3
import pytest
from botocore.exceptions import ClientError

from agentplatform import CodeInterpreter, CodeInterpreterError

pytestmark = pytest.mark.skipif("AWS_ENDPOINT_URL" not in os.environ, reason="no platform to talk to")

REGION = os.environ.get("AWS_REGION", "us-east-1")


@pytest.fixture(scope="module")
def session():
    with CodeInterpreter(REGION, name="of a test", session_timeout_seconds=600) as interpreter:
        yield interpreter


def status_of(session_id: str) -> str:
    data = boto3.client("bedrock-agentcore", region_name=REGION)
    return data.get_code_interpreter_session(codeInterpreterIdentifier="aws.codeinterpreter.v1", sessionId=session_id)["status"]


def test_a_with_block_opens_and_ends_a_session():
    with CodeInterpreter(REGION) as interpreter:
        opened = interpreter.session_id
        assert opened is not None and status_of(opened) == "READY"
        assert interpreter.start() == opened
    assert interpreter.session_id is None
    assert status_of(opened) == "TERMINATED"
    interpreter.stop()


def test_a_session_is_opened_by_the_first_call_too():
    interpreter = CodeInterpreter(REGION)
    try:
        assert interpreter.invoke("executeCode", {"language": "python", "code": "6 * 7"}).text == "42"
    finally:
        interpreter.stop()


def test_name_and_timeout_are_those_of_the_session(session):
    data = boto3.client("bedrock-agentcore", region_name=REGION)
    seen = data.get_code_interpreter_session(codeInterpreterIdentifier=session.identifier, sessionId=session.session_id)
    assert (seen["name"], seen["sessionTimeoutSeconds"]) == ("of a test", 600)


def test_output_comes_as_it_is_printed_and_whole_in_the_result(session):
    printed = []

    def on_output(*said):
        printed.append(said)
        session.upload("seen", b"")

    # Ends only if its first line has come.
    code = "import os, time\nprint('a', flush=True)\nwhile not os.path.exists('seen'): time.sleep(0.01)\nprint('b')\n'value'"
    result = session.invoke("executeCode", {"language": "python", "code": code}, on_output=on_output)
    assert printed == [("stdout", "a\n"), ("stdout", "b\n")]
    assert result.stdout == "a\nb\n"
    assert result.text == "a\nb\n'value'"
    assert result.content[0] == {"type": "text", "text": "a\nb\n"}
    assert result.structured_content["exitCode"] == 0


def test_code_that_fails_is_a_result(session):
    result = session.invoke("executeCode", {"language": "typescript", "code": "const n: number = 4; throw new Error('on purpose')"})
    assert result.is_error
    assert "on purpose" in result.stderr


def test_files_of_any_size_and_name_go_in_and_out(session):
    data = os.urandom(9 * 1024 * 1024 + 17)
    name = "it's large/é.bin"
    session.upload(name, data)
    assert hashlib.sha256(session.download(name)).digest() == hashlib.sha256(data).digest()
    session.upload("small.txt", "text, é")
    assert session.download("small.txt").decode() == "text, é"
    session.upload("none", b"")
    assert session.download("none") == b""


def test_what_cannot_be_read_or_written_says_so(session):
    with pytest.raises(CodeInterpreterError, match="No such file"):
        session.download("nowhere.txt")
    with pytest.raises(CodeInterpreterError, match="leads out of the workspace"):
        session.upload("../outside", "x")


def test_an_unknown_operation_is_boto3s_error(session):
    with pytest.raises(ClientError, match="ValidationException"):
        session.invoke("fly")


def test_a_session_that_is_gone_is_said(session):
    interpreter = CodeInterpreter(REGION)
    opened = interpreter.start()
    boto3.client("bedrock-agentcore", region_name=REGION).stop_code_interpreter_session(
        codeInterpreterIdentifier=interpreter.identifier, sessionId=opened
    )
    with pytest.raises(ClientError, match="has ended"):
        interpreter.invoke("executeCommand", {"command": "true"})
    interpreter.stop()
