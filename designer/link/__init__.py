"""The link to the engine process: the designer lives on when the engine dies."""
