#!/usr/bin/env bash
# controller-runtime v0.25.2: one would expect that objects of the fake client have a UID and a generation, because it keeps resource
# versions, finalizers and managed fields like a server. It sets neither, nor the creation time. Each object without a UID counts as
# controlled by each other one: IsControlledBy is true for an owner that the object does not have. A changed spec keeps generation 0, so
# that a test of observedGeneration passes whatever the controller writes. A patch without a change raises the resource version, which a
# server leaves alone.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	blue := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blue"}}
	red := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	must(server.Create(ctx, blue))
	must(server.Create(ctx, red))
	fmt.Printf("created: UID %q, generation %d, created at zero: %t\n", blue.UID, blue.Generation, blue.CreationTimestamp.IsZero())

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	must(controllerutil.SetControllerReference(blue, pod, scheme.Scheme))
	must(server.Create(ctx, pod))
	fmt.Println("the pod of blue is controlled by blue:", metav1.IsControlledBy(pod, blue), "by red:", metav1.IsControlledBy(pod, red))

	blue.Spec.Paused = true
	must(server.Update(ctx, blue))
	fmt.Println("spec changed: generation", blue.Generation, "resource version", blue.ResourceVersion)
	must(server.Patch(ctx, blue, client.RawPatch("application/merge-patch+json", []byte("{}"))))
	fmt.Println("empty patch: resource version", blue.ResourceVersion)
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/{api,apimachinery,client-go,apiextensions-apiserver}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
created: UID "", generation 0, created at zero: true
the pod of blue is controlled by blue: true by red: true
spec changed: generation 0 resource version 2
empty patch: resource version 3
END
