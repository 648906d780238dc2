"""What a `probe.toml` may say, and the one line for what it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.witness.ignored import Ignored

BASE = 'agent = "python agent.py --db data/orders.db"\n[[store]]\nsqlite = "data/orders.db"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my shop"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "orders.db").write_bytes(b"")
    monkeypatch.chdir(folder)
    return folder


def read(text: str, **environment: str) -> ProbeSettings:
    Path("probe.toml").write_text(text, encoding="utf-8")
    return ProbeSettings(Path("probe.toml"), environment)


def read_for_a_box(text: str) -> ProbeSettings:
    Path("probe.toml").write_text(text, encoding="utf-8")
    return ProbeSettings(Path("probe.toml"), {}, boxed=True)


@pytest.mark.usefixtures("here")
def test_a_config_that_nothing_hands_to_the_agent_is_refused_before_anything_is_started() -> None:
    Path(".mcp.json").write_text('{"mcpServers": {"shop": {"command": "serve"}}}')
    for agent, more in (("python agent.py", ""), ("python agent.py .mcp.json", 'resume = "python agent.py --resume"\n')):
        with pytest.raises(ConfigError, match=r"^\.mcp\.json: no word of the agent's command hands it over; write the config"):
            read(f'agent = "{agent}"\n{more}mcp = ".mcp.json"\n{BASE[BASE.index("[") :]}')
    with pytest.raises(ConfigError, match=r"^probe\.toml: agent: \{mcp\} is gone; write the path of the config there: \.mcp"):
        read(f'agent = "python agent.py {{mcp}}"\nmcp = ".mcp.json"\n{BASE[BASE.index("[") :]}')
    for agent in ("python agent.py .mcp.json data/orders.db", "python agent.py data/orders.db --config=.mcp.json"):
        assert read(f'agent = "{agent}"\nmcp = ".mcp.json"\n{BASE[BASE.index("[") :]}').subject.configs


@pytest.mark.usefixtures("here")
def test_in_a_box_a_store_that_says_in_place_is_where_each_copy_is() -> None:
    assert read_for_a_box(BASE + "in_place = true\n").stores == read_for_a_box(BASE).stores


@pytest.mark.usefixtures("here")
def test_in_a_box_nothing_has_to_hand_a_copy_over() -> None:
    Path(".mcp.json").write_text('{"mcpServers": {"shop": {"command": "serve"}}}')
    Path("agent.py").write_text("open('data/orders.db')")
    text = 'agent = "python agent.py"\nmcp = ".mcp.json"\n[[store]]\nsqlite = "data/orders.db"\n'
    settings = read_for_a_box(text)
    settings.check_unasked()
    assert settings.is_boxed
    assert settings.manifest_entry(False, ()).boxed


@pytest.mark.usefixtures("here")
def test_in_a_box_the_agents_copy_of_a_config_is_no_change_of_the_folder_in_which_it_lies() -> None:
    Path(".mcp[1].json").write_text('{"mcpServers": {"shop": {"command": "serve"}}}')
    text = 'agent = "python agent.py"\nmcp = ".mcp[1].json"\n[[store]]\nfolder = "."\n'
    [store] = read_for_a_box(text).stores
    assert Ignored(store.ignore)(".mcp[1].json") and not Ignored(store.ignore)(".mcp1.json")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", ["docker run shop", "sudo docker run shop", "/usr/bin/podman run shop"])
def test_a_program_that_runs_outside_of_any_box_is_refused_by_its_name(command: str) -> None:
    program, *words = command.split()
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"shop": {"command": program, "args": words}}}))
    text = f'agent = "python agent.py .mcp.json data/orders.db"\nmcp = ".mcp.json"\n{BASE[BASE.index("[") :]}'
    with pytest.raises(ConfigError, match=r"the MCP server shop is started by (docker|podman), whose server runs it outside"):
        read_for_a_box(text)
    assert not read(text).is_boxed


@pytest.mark.usefixtures("here")
def test_a_box_holds_an_agent_whose_store_is_on_a_server() -> None:
    assert read_for_a_box('agent = "python agent.py"\n[[store]]\npostgres = "postgresql:///shop"\n').is_boxed


@pytest.mark.usefixtures("here")
def test_a_store_whose_copy_nothing_names_to_the_agent_is_refused_before_the_agent_can_write_to_it() -> None:
    store = '[[store]]\nsqlite = "data/orders.db"\n'
    with pytest.raises(
        ConfigError, match=r"^probe\.toml: store orders: no command, MCP config or variable has the path data/orders"
    ):
        read(f'agent = "python agent.py"\n{store}')
    assert read(f'agent = "python agent.py"\n{store}variable = "DB"\n').stores
    assert read(f'agent = "python agent.py"\nenvironment = {{ URL = "sqlite:///data/orders.db" }}\n{store}').stores
    assert read(f'agent = "python agent.py"\n{store}', ORDERS="data/orders.db").stores
    server = {"command": "serve", "env": {"DB": "data/orders.db"}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
    assert read(f'agent = "python agent.py .mcp.json"\nmcp = ".mcp.json"\n{store}').stores
    folder = 'folder = "data"\n[[store]]\nfolder = "data"\n'
    assert read(f'agent = "python agent.py"\n{folder}').stores


@pytest.mark.usefixtures("here")
def test_a_probe_is_another_where_code_of_the_agent_changed_and_the_same_where_tests_data_or_packages_did(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    text = BASE.replace("python agent.py", f"python -m shop.clerk agent.py {elsewhere}/tool.py")
    code = ["agent.py", "shop/clerk.py", "shop/deep/imported.ts", f"{elsewhere}/tool.py", f"{elsewhere}/imported.py"]
    other = [
        "tests/probe/test_x.py",
        "venv/pyvenv.cfg",
        "venv/lib/six.py",
        "node_modules/a/b.js",
        ".hidden/c.py",
        "data/log.txt",
    ]
    for name in (*code, *other):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("print(1)")
    known = {read(text).manifest_entry(False, ()).subject}
    for number, name in enumerate(code, start=2):
        Path(name).write_text("print(2)")
        known.add(read(text).manifest_entry(False, ()).subject)
        assert len(known) == number, name
    for name in other:
        Path(name).write_text("print(2)")
        assert read(text).manifest_entry(False, ()).subject in known, name


@pytest.mark.usefixtures("here")
def test_three_lines_are_a_whole_probe() -> None:
    settings = read(BASE)
    subject, (store,) = settings.subject, settings.stores
    assert subject.name == "my-shop" and subject.agent.start == ("python", "agent.py", "--db", "data/orders.db")
    assert subject.agent.resume == subject.agent.start and subject.model is None
    assert (store.name, store.kind, store.where, dict(store.variables)) == ("orders", "sqlite", "data/orders.db", {})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("agent = 1\n" + BASE[BASE.index("["):], "agent"),
        (BASE.replace("agent =", "agnet ="), "unknown key 'agnet'; did you mean 'agent'?"),
        (BASE + "ignre = []\n", "unknown key 'store.0.ignre'; did you mean 'ignore'?"),
        (BASE + "in_place = true\n", "store orders: in_place: the probe works on copies alone: in a box the copy stands"),
        (BASE.replace('sqlite = "data/orders.db"', 'name = "x"'), "a store is one of"),
        (BASE + 'folder = "data"\n', "a store is one of"),
        (BASE.replace('sqlite = "data/orders.db"', 'mysql = "mysql://u@h/d"'), "store.0.mysql: no witness reads mysql"),
        (BASE.replace('sqlite = "data/orders.db"', 'postgres = "mysql+pymysql://u@h/d"'), "no witness reads mysql"),
        (BASE[: BASE.index("[")], "store: is missing; write what the agent changes under [[store]]"),
        (BASE.replace("[[store]]", "[store]"), "must be a list, not {'sqlite': 'data/orders.db'}; write"),
        (BASE.replace('"data/orders.db"\n', '"data/none.db"\n'), "data/none.db is no file here"),
        (BASE.replace("python agent.py", "python 'agent.py"), "No closing quotation"),
        ('agent = ""\n' + BASE[BASE.index("["):], "agent: is empty"),
        ('mcp = ".mcp.json"\n' + BASE, "mcp: .mcp.json is no file here"),
        ('environment = {KEY = "$NOT_SET"}\n' + BASE, "the variable NOT_SET is not set"),
        ('environment = {"A=B" = "x"}\n' + BASE, 'environment."A=B": does not fit ^[^=]*$'),
        (BASE + 'variable = "A=B"\n', "store.0.variable: does not fit"),
        ('folder = "~nobodyatall"\n' + BASE, "folder: ~nobodyatall is no folder here"),
        (BASE.replace("data/orders.db", "~nobodyatall/a.db"), "~nobodyatall/a.db is no file here"),
        ('name = "../x"\n' + BASE, "is no name"),
        ("patience = 0\n" + BASE, "patience: must be more than 0"),
        (BASE + '[[store]]\nsqlite = "data/orders.db"\n', "two are called 'orders'"),
        (BASE + '[model]\nurl = "http://x"\nscript = "serve"\n', "a url or a script"),
        ("agent = [\n", "is not TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_the_file(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(text)
    assert str(error.value).startswith("probe.toml") and line in str(error.value) and "\n" not in str(error.value)


@pytest.mark.usefixtures("here")
def test_a_missing_file_names_the_command_that_writes_it() -> None:
    with pytest.raises(ConfigError, match="bench probe --init"):
        ProbeSettings(Path("probe.toml"), {})


@pytest.mark.usefixtures("here")
def test_a_store_can_be_handed_over_in_a_variable_and_an_address_is_no_name() -> None:
    text = 'remote = ["host"]\nagent = ["a b", "c"]\n[[store]]\npostgres = "$DB"\nvariable = "DB"\n'
    text += '[[store]]\nfolder = "data"\nvariable = "DATA"\n'
    settings = read(text, DB="postgresql://me:pass@host/ledger?sslmode=prefer")
    ledger, data = settings.stores
    assert settings.subject.agent.start == ("a b", "c")
    assert (ledger.name, ledger.where, dict(ledger.variables)) == (
        "ledger",
        "postgresql://me:pass@host/ledger?sslmode=prefer",
        {"DB": "{store}"},
    )
    assert (data.name, data.kind) == ("data", "folder")
    assert "pass" not in settings.manifest_entry(False, ()).model_dump_json()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("model", "variables", "trusted"),
    [
        ("", {}, True),
        ("", {"OPENAI_BASE_URL": "http://near:4000/v1"}, True),
        ('url = "https://api.openai.com/v1/"', {}, True),
        ('url = "http://near:4000/v1"', {"OPENAI_BASE_URL": "http://near:4000/other"}, True),
        ('url = "https://api.anthropic.com"\ndialect = "anthropic"', {}, True),
        ('url = "http://127.0.0.1:8000/v1"', {}, False),
        ('url = "http://api.openai.com/v1"', {}, False),
        ('url = "https://api.openai.com@evil.example/v1"', {}, False),
        ('url = "https://api.openai.com.evil.example/v1"', {}, False),
        ('url = "https://api.openai.com:444/v1"', {}, False),
        ('url = "https://api.openai.com"\ndialect = "anthropic"', {}, False),
        ('variables = ["HTTP_PROXY"]', {"HTTP_PROXY": "http://proxy:3128"}, False),
        ('url = "http://evil.example/v1"', {"OPENAI_BASE_URL": "http://near:4000/v1"}, False),
    ],
)
def test_keys_may_go_to_the_provider_and_where_the_owners_own_variable_points(
    model: str, variables: dict[str, str], trusted: bool
) -> None:
    source = read(BASE + f"[model]\n{model}\n", **variables).subject.model
    assert source and source.trusted == trusted


@pytest.mark.usefixtures("here")
def test_an_address_with_a_models_key_in_it_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"model.url: would send OPENAI_API_KEY, a model's key, with the address; leave it out"
    ):
        read(BASE + '[model]\nurl = "http://evil.example/${OPENAI_API_KEY}"\n', OPENAI_API_KEY="sk-of-the-owner")


@pytest.mark.usefixtures("here")
def test_the_model_is_where_its_variable_points_or_its_provider() -> None:
    assert read(BASE + "[model]\n", OPENAI_BASE_URL="http://local/v1").subject.model.url == "http://local/v1"  # type: ignore[union-attr]
    assert read(BASE + "[model]\n").subject.model.url == "https://api.openai.com/v1"  # type: ignore[union-attr]
    scripted = read(BASE + '[model]\nscript = "serve {port}"\nprice_in = 1.0\nprice_out = 2.0\n')
    assert scripted.subject.model and scripted.subject.model.url == "" and scripted.subject.model.script == ("serve", "{port}")
    assert scripted.parameters and scripted.parameters.prices == (1.0, 2.0)


@pytest.mark.usefixtures("here")
def test_another_agent_is_another_subject_and_its_words_are_not_in_the_manifest() -> None:
    Path("agent.py").write_text("one")
    first = read(BASE + 'name = "orders"\n').manifest_entry(False, ())
    assert read(BASE + 'name = "orders"\n').manifest_entry(False, ()) == first
    Path("agent.py").write_text("two")
    assert read(BASE + 'name = "orders"\n').manifest_entry(False, ()).subject != first.subject
    assert "agent.py" not in first.model_dump_json()


@pytest.mark.usefixtures("here")
def test_each_command_that_is_run_is_named() -> None:
    Path(".mcp.json").write_text('{"mcpServers": {"shop": {"command": "serve", "args": ["shop"]}}}')
    text = 'done = "check it"\nmcp = ".mcp.json"\nsaid_done = ["grep", "done"]\n' + BASE.replace(
        "agent.py", "agent.py .mcp.json"
    )
    text += '[[service]]\nname = "till"\nvariable = "TILL"\nurl = "http://localhost:{port}"\ncommand = "till {port}"\n'
    assert [each.words[0] for each in read(text).programs()] == ["python", "check", "grep", "serve", "till"]
    assert read(text).manifest_entry(False, ()).doors == {"shop": "mcp_stdio", "till": "http"}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["function"], "'function' is the probe's own name; rename this server or service"),
        (["till", "till"], "two servers or services are named 'till'; rename one"),
    ],
)
def test_calls_of_two_services_are_told_apart_by_their_names(names: list[str], line: str) -> None:
    service = '[[service]]\nname = "{}"\nvariable = "TILL"\nurl = "http://localhost:8000"\n'
    with pytest.raises(ConfigError, match=line):
        read(BASE + "".join(map(service.format, names)))


@pytest.mark.usefixtures("here")
def test_a_service_needs_no_variable_in_a_box_and_one_without_a_box() -> None:
    text = BASE + '[[service]]\nname = "till"\nurl = "http://localhost:8000"\n'
    Path("probe.toml").write_text(text)
    assert ProbeSettings(Path("probe.toml"), {}, boxed=True).subject.services[0].variable == ""
    with pytest.raises(ConfigError, match="service till: without a box a variable hands its address over"):
        read(text)


@pytest.mark.usefixtures("here")
def test_hosts_that_are_allowed_are_those_of_the_web_or_have_a_port_and_commands_of_servers_add_theirs() -> None:
    Path("tools.json").write_text('{"mcpServers": {"far": {"command": "mcp-remote", "args": ["http://localhost:9000/mcp"]}}}')
    hosts = 'remote = ["api.example.com", "cache.example.com:6379", "[2001:db8::1]:7"]\n'
    settings = read(
        hosts + BASE.replace("agent.py", "agent.py tools.json").replace("[[store]]", 'mcp = "tools.json"\n[[store]]')
    )
    assert settings.subject.passes == (
        ("api.example.com", 443),
        ("api.example.com", 80),
        ("cache.example.com", 6379),
        ("2001:db8::1", 7),
        ("localhost", 9000),
    )
    pytest.importorskip("cryptography")
    boxed = ProbeSettings(Path("probe.toml"), {}, boxed=True)
    assert boxed.subject.hosts == ("api.example.com",) and ("api.example.com", 443) not in boxed.subject.passes
    assert boxed.manifest_entry(False, ()).doors["api.example.com"] == "http"


@pytest.mark.usefixtures("here")
def test_a_host_that_something_declares_is_no_door_of_its_own() -> None:
    hosts = 'remote = ["shop.example", "db.example", "mcp.example", "other.example"]\n'
    Path("tools.json").write_text('{"mcpServers": {"far": {"url": "https://mcp.example/mcp"}}}')
    text = hosts + BASE.replace("agent.py", "agent.py tools.json").replace("[[store]]", 'mcp = "tools.json"\n[[store]]')
    text += '[[store]]\npostgres = "$DB"\n[[service]]\nname = "shop"\nurl = "$SHOP"\n'
    Path("probe.toml").write_text(text)
    pytest.importorskip("cryptography")
    variables = {"DB": "postgresql://me@db.example/bank", "SHOP": "https://shop.example/v1"}
    assert ProbeSettings(Path("probe.toml"), variables, boxed=True).subject.hosts == ("other.example",)


@pytest.mark.usefixtures("here")
def test_what_the_agent_sends_is_caught_in_a_box_alone_and_the_address_of_a_webhook_is_in_no_name() -> None:
    text = 'agent = "python agent.py"\n[[store]]\nmail = "smtp.example.com:587"\n[[store]]\nwebhook = "$HOOK"\n'
    Path("probe.toml").write_text(text)
    variables = {"HOOK": "https://hooks.example.com/services/the-secret"}
    settings = ProbeSettings(Path("probe.toml"), variables, boxed=True)
    assert [store.name for store in settings.stores] == ["mail", "webhook"]
    assert settings.secret_addresses[1] == variables["HOOK"]
    assert {"mail": "mail", "webhook": "http"}.items() <= settings.manifest_entry(False, ()).doors.items()
    with pytest.raises(ConfigError, match="store mail: mail is caught in a box alone; leave --unboxed out"):
        ProbeSettings(Path("probe.toml"), variables)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("bad", ["", "https://api.example.com", "me@host", "host:port", "host:99999", "host/path", "a b"])
def test_what_is_no_host_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match="is no host, such as api"):
        read(f'remote = ["{bad}"]\n{BASE}')


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("key", ["variable", "ignore"])
@pytest.mark.parametrize(
    ("kind", "place", "takes"),
    [
        ("sqlite", "data/orders.db", ("variable", "ignore")),
        ("postgres", "postgresql:///shop", ("variable", "ignore")),
        ("folder", "data", ("variable", "ignore")),
        ("file", "data/orders.db", ("variable", "ignore")),
        ("memory", "state.json", ("variable",)),
    ],
)
def test_each_kind_of_store_takes_its_keys_and_refuses_the_others(
    kind: str, place: str, takes: tuple[str, ...], key: str
) -> None:
    value = {"variable": '"PLACE"', "ignore": '["x"]'}[key]
    text = f'agent = "python agent.py {place}"\n[[store]]\n{kind} = "{place}"\n{key} = {value}\n'
    if key in takes:
        assert read(text).stores
        return
    with pytest.raises(ConfigError, match=rf"^probe\.toml: store\.0: {key}: a store of kind {kind} takes "):
        read(text)
    assert read(text.replace('["x"]', "[]")).stores


@pytest.mark.usefixtures("here")
def test_a_memory_of_a_fixed_name_is_refused_without_a_box() -> None:
    with pytest.raises(ConfigError, match=r"write the path there, or name a `variable`$"):
        read(f'agent = "python agent.py data/orders.db"\n[[store]]\nmemory = "notes.txt"\n{BASE[BASE.index("[") :]}')


@pytest.mark.usefixtures("here")
def test_a_part_of_a_longer_path_and_the_working_directory_hand_no_copy_over() -> None:
    text = 'agent = "python agent.py"\n[[store]]\nfolder = "data"\n'
    for name, path in (
        ("PWD", "data"),
        ("PROJECT", "/home/me/data-agent"),
        ("LOGS", "metadata/data.log"),
        ("X", "/other/data"),
    ):
        with pytest.raises(ConfigError, match="store data: no command, MCP config or variable has the path data"):
            read(text, **{name: path})
    for path in ("data", "./data/x.txt", str(Path("data").resolve())):
        assert read(text, PLACE=path).stores, path


FAR = '[[service]]\nname = "till"\nvariable = "TILL"\nurl = "%s"\n'


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("api.example.com", "https://api.example.com/v1"),
        ("10.0.0.7", "http://10.0.0.7:8080"),
        ("localhost.example.com", "http://localhost.example.com"),
        ("evil.example", "http://127.0.0.1@evil.example"),
        ("far.example", "$FAR"),
        ("127.1", "http://127.1"),
    ],
)
def test_what_is_not_on_this_machine_is_struck_only_if_the_file_allows_its_host(host: str, url: str) -> None:
    text = BASE + FAR % url
    with pytest.raises(ConfigError, match=rf'^probe\.toml: the service till is at {host}, not on .* remote = \["{host}"\]$'):
        read(text, FAR="https://far.example/pay")
    with pytest.raises(ConfigError, match="the service till is at"):
        read('remote = ["other.example"]\n' + text, FAR="https://far.example/pay")
    assert read(f'remote = ["{host}"]\n' + text, FAR="https://far.example/pay").addresses[0].hosts == (host,)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "http://localhost", "http://[::1]:80", "http://0.0.0.0:9", "http://127.9.9.9"]
)
def test_this_machine_needs_no_leave(url: str) -> None:
    assert read(BASE + FAR % url).addresses


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("dsn", "variables", "host"),
    [
        ("postgresql://me:word@db.example/shop", {}, "db.example"),
        ("postgresql+psycopg://me:word@db.example/shop", {}, "db.example"),
        ("host=localhost,db.example dbname=shop", {}, "db.example"),
        ("host=localhost hostaddr=10.1.2.3 dbname=shop", {}, "10.1.2.3"),
        ("dbname=shop", {"PGHOST": "db.example"}, "db.example"),
        ("postgresql:///shop?service=prod", {}, "service=prod"),
    ],
)
def test_a_database_elsewhere_needs_leave_wherever_its_host_is_written(dsn: str, variables: dict[str, str], host: str) -> None:
    text = f'{BASE}[[store]]\npostgres = "{dsn}"\nvariable = "DSN"\nname = "shop"\n'
    with pytest.raises(ConfigError, match=f"the database of store shop is at {host}, not on this machine") as raised:
        read(text, **variables)
    assert "word" not in str(raised.value)
    assert read(f'remote = ["{host}"]\n' + text, **variables).stores
    assert read(text.replace(dsn, "host=/run/postgresql dbname=shop")).stores


@pytest.mark.usefixtures("here")
def test_an_mcp_server_elsewhere_needs_leave_by_its_url_or_by_a_word_of_its_command() -> None:
    text = 'mcp = ".mcp.json"\n' + BASE.replace("agent.py", "agent.py .mcp.json")
    for server in ({"url": "${FAR}/mcp"}, {"command": "npx", "args": ["mcp-remote", "https://far.example/mcp"]}):
        Path(".mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
        with pytest.raises(ConfigError, match=r"the MCP server shop is at far\.example, not on this machine"):
            read(text, FAR="https://far.example")
        assert read('remote = ["far.example"]\n' + text, FAR="https://far.example").addresses
