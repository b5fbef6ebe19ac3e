import os

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # torch alone is the judge


def pytest_collection_modifyitems(items):
    # It looks back at what the others called.
    items.sort(key=lambda item: item.path.name == "test_every_operator.py")
