from bedrock_agentcore import BedrockAgentCoreApp
from strands import Agent

app = BedrockAgentCoreApp()
agent = Agent()


@app.entrypoint
def answer(payload):
    return str(agent(payload["prompt"]))


app.run()
