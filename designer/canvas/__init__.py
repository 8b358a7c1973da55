"""The canvas: nodes, edges, gestures, layout, overlays."""
