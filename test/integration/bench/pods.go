package main

import (
	"bytes"
	_ "embed"
	"fmt"
)

// podFormat is the line of a watch-list with a Pod of a Deployment, for an application, a team and numbers.
//
//go:embed pod.json.fmt
var podFormat string

// podTemplates is the number of different Pods that the synthetic server copies.
const podTemplates = 200

// podLines returns a watch-list of Pods, with the same teams and applications as Certificates.
func podLines() []byte {
	applications := []string{"checkout", "payments", "catalog", "search", "identity", "billing", "gateway",
		"inventory"}
	var lines bytes.Buffer
	for n := range podTemplates {
		fmt.Fprintf(&lines, podFormat, applications[n%len(applications)],
			fmt.Sprintf("team-%03d", n%namespaces), n, n%60, n%250, 1_000_000+n)
	}
	return lines.Bytes()
}
