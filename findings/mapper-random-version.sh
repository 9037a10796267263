#!/usr/bin/env bash
# controller-runtime v0.25.2 and client-go v0.37.2: one would expect that a REST mapping without a version follows the server's order
# of versions, as kubectl's mapper does, or at least that it is the same each time. The mapper of controller-runtime puts the
# preferred version of the group first, and the other versions in Go's random map order. A kind that the preferred version does not
# have, as ReferenceGrant of the Gateway API 1.0, is mapped to v1beta1 in one process and to the deprecated v1alpha2 in the next. A
# resource that is named without a group and exists in two, as clusters, is found in either group at random.
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
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func version(name string, resources ...string) string {
	var all []string
	for _, r := range resources {
		plural, kind, _ := strings.Cut(r, "/")
		all = append(all, fmt.Sprintf(`{"resource":%q,"scope":"Namespaced","verbs":["get"],"responseKind":{"kind":%q}}`, plural, kind))
	}
	return fmt.Sprintf(`{"version":%q,"freshness":"Current","resources":[%s]}`, name, strings.Join(all, ","))
}

func group(name string, versions ...string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, name, strings.Join(versions, ","))
}

func list(groups ...string) string {
	return fmt.Sprintf(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, strings.Join(groups, ","))
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", aggregated)
		if r.URL.Path == "/api" {
			fmt.Fprint(w, list(group("", version("v1", "pods/Pod"))))
			return
		}
		fmt.Fprint(w, list(
			group("cluster.x-k8s.io", version("v1beta2", "clusters/Cluster")),
			group("postgresql.cnpg.io", version("v1", "clusters/Cluster")),
			group("gateway.networking.k8s.io", version("v1", "gateways/Gateway"),
				version("v1beta1", "gateways/Gateway", "referencegrants/ReferenceGrant"),
				version("v1alpha2", "referencegrants/ReferenceGrant"))))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	show("client-go", func() (meta.RESTMapper, error) {
		groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
		return restmapper.NewDiscoveryRESTMapper(groups), err
	})
	show("controller-runtime", func() (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(config, http.DefaultClient)
	})
}

// show prints the answers of 100 mappers of the same server.
func show(name string, create func() (meta.RESTMapper, error)) {
	var grants, gateways, clusters []string
	for range 100 {
		mapper, err := create()
		if err != nil {
			panic(err)
		}
		for kind, versions := range map[string]*[]string{"Gateway": &gateways, "ReferenceGrant": &grants} {
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: kind})
			if err != nil {
				panic(err)
			}
			*versions = append(*versions, mapping.GroupVersionKind.Version)
		}
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "clusters"})
		if err != nil {
			panic(err)
		}
		clusters = append(clusters, resource.Group)
	}
	for _, answers := range []*[]string{&gateways, &grants, &clusters} {
		slices.Sort(*answers)
		*answers = slices.Compact(*answers)
	}
	fmt.Println(name, "Gateway", gateways, "ReferenceGrant", grants, "group of clusters", clusters)
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/{api,apimachinery,client-go,apiextensions-apiserver}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
client-go Gateway [v1] ReferenceGrant [v1beta1] group of clusters [cluster.x-k8s.io]
controller-runtime Gateway [v1] ReferenceGrant [v1alpha2 v1beta1] group of clusters [cluster.x-k8s.io postgresql.cnpg.io]
END
