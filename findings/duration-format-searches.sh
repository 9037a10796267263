#!/usr/bin/env bash
# kube-openapi v0.0.0-20260721132016-d427ff9ee9ad, as the API server 1.37.2 uses it: one would expect that a field with "format:
# duration" holds a Go duration or is rejected, because its definition names time.ParseDuration. A text that Go rejects is searched
# for whole numbers with a unit instead, and the rest is ignored. So "1.5d" is five days, "-1d" is plus one day, "1y2d" is two days,
# and "P1M", one month in ISO 8601, is one minute. Rules in CEL compute with these values. metav1.Duration of a controller rejects
# the same texts, and with them the whole list that contains one.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func main() {
	schema := spec.StringProperty()
	schema.Format = "duration"
	validator := validate.NewSchemaValidator(schema, nil, "spec.ttl", strfmt.Default)
	for _, text := range []string{"1h30m", "1d", "1.5h", "1.5d", "-1d", "1y2d", "P1M", "3600"} {
		value, _ := strfmt.ParseDuration(text)
		var list struct{ Items []metav1.Duration }
		err := json.Unmarshal(fmt.Appendf(nil, `{"items":["1s",%q]}`, text), &list)
		fmt.Printf("%s: valid %t, as %v; list decodes %t\n", text, validator.Validate(text).IsValid(), value, err == nil)
	}
}
END
go get k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
1h30m: valid true, as 1h30m0s; list decodes true
1d: valid true, as 24h0m0s; list decodes false
1.5h: valid true, as 1h30m0s; list decodes true
1.5d: valid true, as 120h0m0s; list decodes false
-1d: valid true, as 24h0m0s; list decodes false
1y2d: valid true, as 48h0m0s; list decodes false
P1M: valid true, as 1m0s; list decodes false
3600: valid false, as 0s; list decodes false
END
