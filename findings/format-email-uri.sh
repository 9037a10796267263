#!/usr/bin/env bash
# kube-openapi v0.0.0-20260721132016-d427ff9ee9ad, as the API server 1.37.2 validates custom resources with it: one would expect that
# a field with "format: email" holds an address, and one with "format: uri" a URI with a scheme, as JSON Schema defines both. email
# also accepts a name before the address, which no mailbox field of a program expects. uri accepts a path such as /etc/config, and
# a scheme with nothing behind it, but rejects example.com/a, which has neither.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func main() {
	for _, c := range [][2]string{{"email", "ann@example.com"}, {"email", "Ann <ann@example.com>"}, {"email", "ann"},
		{"uri", "https://example.com/a"}, {"uri", "/etc/config"}, {"uri", "http://"}, {"uri", "example.com/a"}} {
		schema := spec.StringProperty()
		schema.Format = c[0]
		validator := validate.NewSchemaValidator(schema, nil, "spec.field", strfmt.Default)
		fmt.Printf("%s %s: valid %t\n", c[0], c[1], validator.Validate(c[1]).IsValid())
	}
}
END
go get k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad 2>/dev/null
go run . | tee seen
diff - seen <<'END'
email ann@example.com: valid true
email Ann <ann@example.com>: valid true
email ann: valid false
uri https://example.com/a: valid true
uri /etc/config: valid true
uri http://: valid true
uri example.com/a: valid false
END
