"""The designer: draw a butterfly, see at once whether it holds. The only room with Qt; it never imports Spark."""
