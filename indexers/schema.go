package indexers

import "github.com/crdcache/crdcache/indexers/internal/config"

//go:generate go run ./internal/genschema ../docs/index-config.schema.json

// Schema gives a JSON Schema (draft 2020-12) of config files, for editors. It is made of the same Go types that
// the decoder takes its fields from. What it accepts can still be refused: it knows nothing of paths, of names
// that are taken, and of most fields that do not go together.
func Schema() []byte { return config.Schema() }
