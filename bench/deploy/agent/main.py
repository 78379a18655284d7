from bedrock_agentcore import BedrockAgentCoreApp
from strands import Agent

app = BedrockAgentCoreApp()
EDIT = 0


@app.entrypoint
def answer(payload):
    return {"edit": EDIT, "framework": Agent.__module__}


app.run()
