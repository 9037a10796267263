#!/usr/bin/env bash
# apimachinery v0.37.2: the document readers cut a YAML stream at lines that begin with three hyphens and
# do not ask the YAML parser. A document may begin on that line: then NewDocumentDecoder drops this
# document silently and NewYAMLOrJSONDecoder returns an error. A key that begins with three hyphens is
# cut too. Both readers reject a stream that begins with a YAML directive, because they take the
# directive for a document.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	texts := []string{"id: 1\n--- {id: 2}\n", "id: 1\n---tail: 2\nmore: 3\n", "%YAML 1.1\n---\nid: 1\n"}
	for _, text := range texts {
		fmt.Printf("%q\n", text)
		read("parser", yaml.NewDecoder(strings.NewReader(text)).Decode)
		read("NewYAMLOrJSONDecoder", k8syaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 64).Decode)
		documents := k8syaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
		read("NewDocumentDecoder", func(v any) error {
			document := make([]byte, 256)
			n, err := documents.Read(document)
			if err != nil {
				return err
			}
			return k8syaml.Unmarshal(document[:n], v)
		})
	}
}

func read(name string, decode func(any) error) {
	fmt.Printf("  %s:", name)
	for {
		var v any
		err := decode(&v)
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Print(" error")
			break
		}
		fmt.Print(" ", v)
	}
	fmt.Println()
}
END
go get k8s.io/apimachinery@v0.37.2 go.yaml.in/yaml/v3@v3.0.4 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"id: 1\n--- {id: 2}\n"
  parser: map[id:1] map[id:2]
  NewYAMLOrJSONDecoder: error
  NewDocumentDecoder: map[id:1]
"id: 1\n---tail: 2\nmore: 3\n"
  parser: map[---tail:2 id:1 more:3]
  NewYAMLOrJSONDecoder: error
  NewDocumentDecoder: map[id:1] map[more:3]
"%YAML 1.1\n---\nid: 1\n"
  parser: map[id:1]
  NewYAMLOrJSONDecoder: error
  NewDocumentDecoder: error
END
