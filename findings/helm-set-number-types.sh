#!/usr/bin/env bash
# Helm v4.3.1: one would expect that a number given with --set has the type that a values file would give it. The option makes an int64 of
# a whole number and leaves a fraction a text; a values file gives a float64 for both. With --set size=0.5 the manifest holds "0.5" in
# quotes, and a comparison that renders with the values file fails. "eq .Values.size 3" holds with --set and fails with the file, because
# Go's templates do not compare an int with a float64.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
)

func render(template string, values map[string]any) string {
	metadata := &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}
	files, err := engine.Render(&chart.Chart{
		Metadata:  metadata,
		Templates: []*common.File{{Name: "templates/web.yaml", Data: []byte(template)}},
	}, common.Values{"Values": values, "Chart": metadata})
	if err != nil {
		return "fails"
	}
	return files["web/templates/web.yaml"]
}

func main() {
	for _, number := range []string{"3", "0.5"} {
		fromFile, err := common.ReadValues([]byte("size: " + number))
		if err != nil {
			panic(err)
		}
		fromSet, err := strvals.Parse("size=" + number)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: file %T, --set %T\n", number, fromFile["size"], fromSet["size"])
		for _, template := range []string{
			"{{ .Values.size }}", "{{ toYaml .Values.size }}", "{{ eq .Values.size 3 }}", "{{ lt .Values.size 1.0 }}", "{{ mulf .Values.size 2 }}",
		} {
			fmt.Printf("  %s: file %s, --set %s\n", template, render(template, fromFile), render(template, fromSet))
		}
	}
}
END
go get helm.sh/helm/v4@v4.3.1 2>/dev/null
go run . | tee seen
diff - seen <<'END'
3: file float64, --set int64
  {{ .Values.size }}: file 3, --set 3
  {{ toYaml .Values.size }}: file 3, --set 3
  {{ eq .Values.size 3 }}: file fails, --set true
  {{ lt .Values.size 1.0 }}: file false, --set fails
  {{ mulf .Values.size 2 }}: file 6, --set 6
0.5: file float64, --set string
  {{ .Values.size }}: file 0.5, --set 0.5
  {{ toYaml .Values.size }}: file 0.5, --set "0.5"
  {{ eq .Values.size 3 }}: file fails, --set fails
  {{ lt .Values.size 1.0 }}: file true, --set fails
  {{ mulf .Values.size 2 }}: file 1, --set 1
END
