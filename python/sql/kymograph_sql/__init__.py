"""The native library of `kymograph` with SQL in it. `kymograph` takes it in place of its own: import that."""
