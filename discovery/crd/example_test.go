package crd_test

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
)

func ExampleRead() {
	const file = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {tags: {type: array, items: {type: string}}}}
---
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
spec: {scope: Everywhere}
`
	definitions, err := crd.Read(strings.NewReader(file), "widgets.yaml")
	v, _ := definitions[0].Version("v1")
	tags := v.Schema.Properties["spec"].Properties["tags"]
	fmt.Println(definitions[0].GroupResource(), tags.Type, tags.Items.Type)
	_, problem, _ := strings.Cut(err.Error(), "\n")
	fmt.Println(err.Error()[:len(err.Error())-len(problem)-1])
	// Output:
	// widgets.example.com array string
	// widgets.yaml:18: document 2: CustomResourceDefinition "": spec.group is missing
}
