"""The theme of the figures: CSS variables that follow JupyterLab, VS Code, Colab or the reader's system.

A figure in a notebook takes the page's own text, border and background colours. A figure that stands alone
(an image on a web page) follows `prefers-color-scheme`. All rules hang on the class `kvfig`, so any number
of figures on a page share them without a clash.
"""

INK = "var(--kv-ink)"
MUTED = "var(--kv-muted)"
LINE = "var(--kv-line)"
STRONG = "var(--kv-strong)"
CARD = "var(--kv-card)"
FOCUS = "var(--kv-focus)"
EDGE = "var(--kv-edge)"

FONT = "var(--jp-ui-font-family,system-ui,sans-serif)"
MONO = "var(--kv-mono)"

LIGHT = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "line": "#c8ced5",
    "strong": "#8c959f",
    "card": "#ffffff",
    "focus": "#b3261e",
    "edge": "rgba(0,0,0,.28)",
}
DARK = {
    "ink": "#e6e9ec",
    "muted": "#9aa4ae",
    "line": "#3d444d",
    "strong": "#7a828c",
    "card": "#15191d",
    "focus": "#ff8a65",
    "edge": "rgba(255,255,255,.22)",
}

# The host's own colour for a role, most specific host first. The accent and the greys of lines are ours.
_HOST = {
    "ink": ("--jp-ui-font-color1", "--vscode-editor-foreground", "--colab-primary-text-color"),
    "muted": ("--jp-ui-font-color2", "--vscode-descriptionForeground", "--colab-secondary-text-color"),
    "card": ("--jp-layout-color0", "--vscode-editor-background", "--colab-primary-surface-color"),
}
_LIGHT_HOSTS = "[data-jp-theme-light=true] .kvfig,.vscode-light .kvfig,html[theme=light] .kvfig"
_DARK_HOSTS = "[data-jp-theme-light=false] .kvfig,.vscode-dark .kvfig,html[theme=dark] .kvfig"


def _declare(colours: dict[str, str]) -> str:
    return "".join(f"--kv0-{role}:{colour};" for role, colour in colours.items())


def _resolve(role: str) -> str:
    value = f"var(--kv0-{role})"
    for name in reversed(_HOST.get(role, ())):
        value = f"var({name},{value})"
    return f"--kv-{role}:{value};"


# Containment keeps a redraw from laying out and painting the rest of a long notebook.
CSS = (
    ".kvlab-picture{contain:layout paint style}"
    f".kvfig{{{_declare(LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{.kvfig{{{_declare(DARK)}}}}}"
    f"{_LIGHT_HOSTS}{{{_declare(LIGHT)}}}"
    f"{_DARK_HOSTS}{{{_declare(DARK)}}}"
    f".kvfig{{{''.join(_resolve(role) for role in LIGHT)}"
    "--kv-mono:var(--jp-code-font-family,ui-monospace,monospace)}"
)
