"""An agent as the pages of FastAPI have it: a body is parsed that says that it is JSON."""

import os

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel


class Question(BaseModel):
    prompt: str


app = FastAPI()


@app.get("/ping")
def ping():
    return {"status": "Healthy"}


@app.post("/invocations")
def invoke(question: Question, request: Request):
    return {"parsed": question.prompt, "type": request.headers.get("content-type")}


uvicorn.run(app, host="0.0.0.0", port=int(os.environ.get("PORT", "8080")))
