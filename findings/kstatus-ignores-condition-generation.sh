#!/usr/bin/env bash
# sigs.k8s.io/cli-utils v0.37.2 and kubectl v0.37.2: one would expect that kstatus and "kubectl wait" agree whether a resource is ready,
# because both know observedGeneration. kubectl reads the one of the condition, where Kubernetes' type metav1.Condition has it,
# and then the one of the status. kstatus reads the one of the status only. After a change of the spec, a custom resource that has it
# in its conditions is Current at once, by the Ready condition of the old spec. A resource whose controller did not write a status
# yet is Current too.
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
	"io"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/wait"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, text := range []string{
		`{"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}`,
		`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}`,
		`{"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}`,
		`{"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}`,
		`{}`,
	} {
		object := `{"apiVersion": "example.com/v1", "kind": "Gate",
			"metadata": {"namespace": "default", "name": "web", "generation": 2}, "status": ` + text + `}`
		var gate unstructured.Unstructured
		if err := json.Unmarshal([]byte(object), &gate); err != nil {
			panic(err)
		}
		result, err := status.Compute(&gate)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n  kstatus: %s, kubectl: %v\n", text, result.Status, kubectlWait(object))
	}
}

// kubectlWait runs kubectl wait against a server with this one object.
func kubectlWait(object string) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		answers := map[string]string{
			"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/apis": `{"kind": "APIGroupList", "apiVersion": "v1",
				"groups": [{"name": "example.com", "versions": [{"groupVersion": "example.com/v1", "version": "v1"}]}]}`,
			"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}`,
			"/apis/example.com/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
				"resources": [{"name": "gates", "singularName": "gate", "namespaced": true, "kind": "Gate", "verbs": ["get"]}]}`,
			"/apis/example.com/v1/namespaces/default/gates/web": object,
		}
		w.Header().Set("Content-Type", "application/json")
		if answers[request.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answers[request.URL.Path])
	}))
	defer server.Close()
	config := genericclioptions.NewConfigFlags(false)
	namespace := "default"
	config.APIServer, config.Namespace = &server.URL, &namespace
	flags := wait.NewWaitFlags(config, genericiooptions.NewTestIOStreamsDiscard())
	flags.ForCondition = []string{"condition=Ready"}
	flags.Timeout = 0
	options, err := flags.ToOptions([]string{"gates.example.com/web"})
	if err != nil {
		panic(err)
	}
	return options.RunWait()
}
END
go get sigs.k8s.io/cli-utils@v0.37.2 k8s.io/{kubectl,cli-runtime,client-go,api,apimachinery}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}
  kstatus: Current, kubectl: condition not met for gates/web
{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}
  kstatus: InProgress, kubectl: condition not met for gates/web
{"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}
  kstatus: Current, kubectl: condition not met for gates/web
{"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}
  kstatus: Current, kubectl: <nil>
{}
  kstatus: Current, kubectl: condition not met for gates/web
END
