"""The exercises of notebook 13."""

TITLE = "Serve a model"
NOTEBOOK = "13_serve_a_model.ipynb"
EXERCISES = ("kv_bytes", "decode_step", "serve")
