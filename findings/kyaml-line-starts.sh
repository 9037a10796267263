#!/usr/bin/env bash
# sigs.k8s.io/yaml v1.6.0, the KYAML of kubectl get -o kyaml: one would expect that reading the output gives
# the values that were written, because KYAML quotes texts to exclude misreadings. A text of several lines
# is quoted line by line. White space at the start of a line, other than a space or a tab, is escaped twice.
# An empty line of a file with Windows line ends thus becomes a backslash and an r. A line that begins with
# a no-break space, an ideographic space or a form feed changes likewise. No error is reported. The writer
# of YAML in the same module keeps all of them. A ConfigMap that is saved and applied again thus changes.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
	"sigs.k8s.io/yaml/kyaml"
)

func main() {
	var encoder kyaml.Encoder
	texts := []string{"a\r\nb\r\n", "a\r\n\r\nb\r\n", "a\n\u00a0b\n", "a\n\u3000b\n", "a\n\fb\n", "\n\t a\n"}
	for _, text := range texts {
		value := map[string]string{"text": text}
		inKYAML, err := encoder.Marshal(value)
		if err != nil {
			panic(err)
		}
		inYAML, err := yaml.Marshal(value)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%+q:", text)
		for _, document := range [][]byte{inKYAML, inYAML} {
			read := map[string]string{}
			if err := yaml.UnmarshalStrict(document, &read); err != nil {
				panic(err)
			}
			fmt.Printf(" %+q", read["text"])
		}
		fmt.Println()
	}
}
END
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"a\r\nb\r\n": "a\r\nb\r\n" "a\r\nb\r\n"
"a\r\n\r\nb\r\n": "a\r\n\\r\nb\r\n" "a\r\n\r\nb\r\n"
"a\n\u00a0b\n": "a\n\\_b\n" "a\n\u00a0b\n"
"a\n\u3000b\n": "a\n\\u3000b\n" "a\n\u3000b\n"
"a\n\fb\n": "a\n\\fb\n" "a\n\fb\n"
"\n\t a\n": "\n\t a\n" "\n\t a\n"
END
