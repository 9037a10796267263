#!/usr/bin/env bash
# client-go v0.37.2: the token of a kubeconfig is ignored if its server has the scheme http. The REST config
# has no BearerToken, requests have no Authorization header, and nothing says so: a local proxy or a test
# server sees an anonymous user. The same token set in a rest.Config by hand is sent to the same server.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: local,
clusters: [{name: local, cluster: {server: %q}}],
users: [{name: reader, user: {token: example}}],
contexts: [{name: local, context: {cluster: local, user: reader}}]}`

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Printf("Authorization: %q\n", r.Header.Get("Authorization"))
	}))
	defer server.Close()
	config, err := clientcmd.RESTConfigFromKubeConfig(fmt.Appendf(nil, kubeconfig, server.URL))
	if err != nil {
		panic(err)
	}
	for _, c := range []*rest.Config{config, {Host: server.URL, BearerToken: "example"}} {
		client, err := rest.HTTPClientFor(c)
		if err != nil {
			panic(err)
		}
		if _, err := client.Get(server.URL); err != nil {
			panic(err)
		}
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
Authorization: ""
Authorization: "Bearer example"
END
