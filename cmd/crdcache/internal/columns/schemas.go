package columns

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemasZip has the schemas of built-in kinds, with a file for each API version. They equal the schemas of a
// kube-apiserver (TestBuiltinSchemas of test/integration/cli).
//
//go:embed schemas.zip
var schemasZip []byte

// builtinSchemas implements filesource.Schemas.
func builtinSchemas(gv schema.GroupVersion) (kinds, others map[string]any) {
	archive := must(zip.NewReader(bytes.NewReader(schemasZip), int64(len(schemasZip))))
	file, err := archive.Open(gv.String() + ".json")
	if err != nil {
		return nil, nil // of another API
	}
	var schemas struct{ Kinds, Others map[string]any }
	must(0, json.NewDecoder(file).Decode(&schemas))
	return schemas.Kinds, schemas.Others
}
