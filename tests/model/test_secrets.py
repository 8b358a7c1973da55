"""Secrets are never written down, wherever a workflow is kept for good."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from engine.errors import BadInput
from engine.model.file import save
from engine.model.operator import Secret
from engine.model.secrets import refuse_secrets, secret_fields, secret_literals, without_secrets
from engine.model.workflow import Workflow
from engine.operators import catalogue


class Login(BaseModel):
    user: str = ""
    token: Secret | None = None


class Service(BaseModel):
    logins: list[Login] = []
    keys: dict[str, Secret] = {}
    login: Login | None = None
    plain: str = ""


def document(password, **more):
    return {"papilio": 1, "nodes": {"s": {"operator": "postgresql_source", "settings": {"password": password}}}, **more}


def found(plain, known=None):
    return [(problem.node, problem.setting) for problem in secret_literals(plain, known or catalogue())]


@pytest.mark.parametrize(
    "literal", ["hunter2", 12345, 1.5, True, ["a"], {"a": "b"}, "x${env:A}", "${env:A}x", "${what}"]
)
def test_whatever_is_written_where_a_secret_belongs_is_one(literal, tmp_path):
    assert len(found(document(literal))) == 1
    assert found(Workflow.model_validate(document(literal)))
    file = tmp_path / "w.butterfly.yaml"
    with pytest.raises(BadInput, match=r"w\.butterfly\.yaml: node `s`, setting `password.*never written"):
        save(Workflow.model_validate(document(literal)), file)
    assert not file.exists()
    assert found(without_secrets(document(literal), catalogue())) == []


@pytest.mark.parametrize("fine", ["", None, "${env:PASSWORD}"])
def test_a_variable_of_the_environment_or_nothing_is_saved(fine, tmp_path):
    refuse_secrets(document(fine), "w")
    plain = document(fine)
    assert without_secrets(plain, catalogue()) is plain


def test_a_parameter_is_as_good_as_what_it_stands_for():
    assert found(document("${pw}", parameters={"pw": {"default": "${env:PW}"}})) == []
    assert found(document("${pw}", parameters={"pw": None})) == []
    for written in ("hunter2", {"default": 12345}):
        plain = document("${pw}", parameters={"pw": written})
        assert found(plain) == [("s", "password")]
        assert without_secrets(plain, catalogue())["parameters"] == {"pw": None}
        assert plain["parameters"] == {"pw": written}, "what was given stays as it is"


def test_secrets_deep_in_the_settings_of_a_plugin_are_found():
    assert secret_fields(Service) == {"token", "keys"}
    settings = {
        "logins": [{"user": "a", "token": "${env:A}"}, {"user": "b", "token": 7}],
        "keys": {"one": "literal", "two": "${env:B}"},
        "login": {"token": "x"},
        "plain": "not a secret",
    }
    plain = {"nodes": {"n": {"operator": "service", "settings": settings}}}
    known = {"service": Service}
    assert found(plain, known) == [("n", "logins[1].token"), ("n", "keys.one"), ("n", "login.token")]
    kept = without_secrets(plain, known)["nodes"]["n"]["settings"]
    assert kept["logins"] == [{"user": "a", "token": "${env:A}"}, {"user": "b", "token": ""}]
    assert (kept["keys"], kept["plain"]) == ({"one": "", "two": "${env:B}"}, "not a secret")


def test_a_document_of_no_known_form_holds_no_secret():
    for plain in ({}, {"nodes": []}, {"nodes": {"a": 1}}, {"nodes": {"a": {"operator": 2, "settings": {}}}}):
        refuse_secrets(plain, "w")
