"""A real browser for the tests of pages."""

import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    if BROWSER is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens a page of a folder; when the test ends, it must have said no error and asked for nothing elsewhere."""
    contexts, errors, outside = [], [], []

    def open_page(folder, name, fragment="", **options):
        def asked(request):
            near = request.url.startswith("file:") and Path(unquote(urlparse(request.url).path)).is_relative_to(folder)
            outside.extend([] if near else [request.url])

        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", asked)
        page.goto((folder / name).as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert outside == []
