#!/usr/bin/env bash
# @kubernetes/client-node 1.4.0 and client-go v0.37.2: one would expect that two clients that read one list of
# files in KUBECONFIG reach the same cluster. The documentation of Kubernetes says that the first file that
# sets a value wins, also for the current context. kubectl follows it, and the JavaScript client takes the
# context of the last file. A script thus changes another cluster than the one that "kubectl config
# current-context" shows. "kubectl config use-context" writes to the first file and has no effect on it.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
for name in staging production; do
    cat >"$name" <<END
apiVersion: v1
kind: Config
current-context: $name
clusters: [{name: $name, cluster: {server: "https://$name.example.com"}}]
users: [{name: $name, user: {token: t}}]
contexts: [{name: $name, context: {cluster: $name, user: $name, namespace: $name}}]
END
done
cat >main.mjs <<'END'
import { KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromDefault();
console.log('JavaScript:', config.getCurrentContext(), config.getCurrentCluster().server);
END
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	files := clientcmd.NewDefaultPathOptions()
	loaded, err := files.GetStartingConfig()
	if err != nil {
		panic(err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		panic(err)
	}
	fmt.Println("Go:        ", loaded.CurrentContext, config.Host)
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go build -o load . 2>/dev/null
npm init -y >/dev/null 2>&1
npm install --no-audit --no-fund --silent @kubernetes/client-node@1.4.0 >/dev/null
for list in staging:production production:staging; do
    echo "KUBECONFIG=$list"
    KUBECONFIG=$list ./load
    KUBECONFIG=$list node main.mjs
done | tee seen
diff - seen <<'END'
KUBECONFIG=staging:production
Go:         staging https://staging.example.com
JavaScript: production https://production.example.com
KUBECONFIG=production:staging
Go:         production https://production.example.com
JavaScript: staging https://staging.example.com
END
