#!/usr/bin/env bash
# gopkg.in/evanphx/json-patch.v4 v4.13.0, which API servers apply, and v5 v5.9.11: one would expect that a list in a merge patch
# replaces the old list as it is, because RFC 7396 merges objects only. Both remove each null field of the objects in the list, at any
# depth. They keep a null element, and they keep the fields if the old value is an object. A patch that CreateMergePatch computes
# thus does not lead to the object that it was computed for: a nullable field in a list element cannot be set to null.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	v5 "github.com/evanphx/json-patch/v5"
	v4 "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	wanted := `{"ports":[null,{"name":"web","target":null}]}`
	for _, old := range []string{`{}`, `{"ports":[]}`, `{"ports":[{"name":"web","target":80}]}`, `{"ports":{}}`} {
		patch, err := v4.CreateMergePatch([]byte(old), []byte(wanted))
		if err != nil {
			panic(err)
		}
		merged4, err := v4.MergePatch([]byte(old), patch)
		if err != nil {
			panic(err)
		}
		merged5, err := v5.MergePatch([]byte(old), patch)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s with the patch %s\n  v4 %s\n  v5 %s\n", old, patch, merged4, merged5)
	}
}
END
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 github.com/evanphx/json-patch/v5@v5.9.11 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{} with the patch {"ports":[null,{"name":"web","target":null}]}
  v4 {"ports":[null,{"name":"web"}]}
  v5 {"ports":[null,{"name":"web"}]}
{"ports":[]} with the patch {"ports":[null,{"name":"web","target":null}]}
  v4 {"ports":[null,{"name":"web"}]}
  v5 {"ports":[null,{"name":"web"}]}
{"ports":[{"name":"web","target":80}]} with the patch {"ports":[null,{"name":"web","target":null}]}
  v4 {"ports":[null,{"name":"web"}]}
  v5 {"ports":[null,{"name":"web"}]}
{"ports":{}} with the patch {"ports":[null,{"name":"web","target":null}]}
  v4 {"ports":[null,{"name":"web","target":null}]}
  v5 {"ports":[null,{"name":"web","target":null}]}
END
