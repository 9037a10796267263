#!/usr/bin/env bash
# @kubernetes/client-node 1.4.0 and sigs.k8s.io/yaml v1.6.0: the loadYaml of the JavaScript client reads
# YAML 1.2, the Go tools of Kubernetes read YAML 1.1. The usual file mode 0644 is thus the decimal number
# 644 in JavaScript, which is the mode 1204, and 420 in Go. An annotation with a plain date becomes a time
# of a day at midnight, while Go keeps its text. Neither reports the manifest, which kubectl applies as meant.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
cat >volume.yaml <<'END'
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {built: 2026-01-02}}
spec: {volumes: [{name: config, configMap: {name: config, defaultMode: 0644}}]}
END
cat >main.mjs <<'END'
import { readFileSync } from 'node:fs';
import { loadYaml } from '@kubernetes/client-node';

const pod = JSON.parse(JSON.stringify(loadYaml(readFileSync('volume.yaml', 'utf8'))));
console.log('JavaScript:', pod.metadata.annotations.built, pod.spec.volumes[0].configMap.defaultMode);
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	text, err := os.ReadFile("volume.yaml")
	if err != nil {
		panic(err)
	}
	var pod struct {
		Metadata struct {
			Annotations map[string]string
		}
		Spec struct {
			Volumes []struct {
				ConfigMap struct {
					DefaultMode int
				}
			}
		}
	}
	err = yaml.Unmarshal(text, &pod)
	fmt.Println("Go:", pod.Metadata.Annotations["built"], pod.Spec.Volumes[0].ConfigMap.DefaultMode, err)
}
END
npm init -y >/dev/null 2>&1
npm install --silent --no-audit --no-fund @kubernetes/client-node@1.4.0 >/dev/null
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
{ node main.mjs && go run main.go; } | tee seen
diff - seen <<'END'
JavaScript: 2026-01-02T00:00:00.000Z 644
Go: 2026-01-02 420 <nil>
END
