"""How a workflow looks: sizes, shapes and words, said once for the canvas and for pictures. No Qt in here."""
