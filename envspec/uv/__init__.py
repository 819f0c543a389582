"""The only caller of uv."""
