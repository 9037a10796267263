package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// vaultCRD returns a CRD of the group vault.io with the given properties of spec.
func vaultCRD(plural, kind, scope, properties string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.vault.io}
spec:
  group: vault.io
  scope: %[3]s
  names: {plural: %[1]s, singular: %[5]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[4]s}}}}}
`, plural, kind, scope, properties, strings.ToLower(kind))
}

const textField = "{type: string}"

var vaultCRDs = []string{
	vaultCRD("issuers", "Issuer", "Namespaced", ""),
	vaultCRD("vaults", "Vault", "Cluster", strings.Join([]string{
		"caSecretRef: {type: object, properties: {name: " + textField + "}}",
		"tokenSecretRef: {type: object, properties: {name: " + textField + ", namespace: " + textField + "}}",
		"issuerRef: {type: object, properties: {name: " + textField + ", kind: " + textField + ", group: " +
			textField + "}}",
		"sourceRef: {type: object, properties: {name: " + textField + ", namespace: " + textField +
			", kind: {type: string, enum: [Secret, ConfigMap]}}}",
		"otherRef: {type: object, properties: {name: " + textField + ", kind: " + textField + "}}",
	}, ", ")),
}

// TestSuggestReferences verifies that suggest uses the scopes and kinds of all types from files or a cluster,
// and warns about omitted references.
func TestSuggestReferences(t *testing.T) {
	const references = `      references:
        - name: issuer
          to:
            group: vault.io
            groupPath: .spec.issuerRef.group
            kind: Issuer
            kindPath: .spec.issuerRef.kind
            namePath: .spec.issuerRef.name
        - name: source
          to:
            group: ""
            kindPath: .spec.sourceRef.kind
            namePath: .spec.sourceRef.name
            namespacePath: .spec.sourceRef.namespace
        - name: tokenSecret
          to:
            group: ""
            kind: Secret
            namePath: .spec.tokenSecretRef.name
            namespacePath: .spec.tokenSecretRef.namespace
`
	gvr := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "vault.io", Version: "v1", Resource: resource}
	}
	server := apitest.New(t,
		apitest.Type{GVR: gvr("vaults"), Kind: "Vault", Singular: "vault"},
		apitest.Type{GVR: gvr("issuers"), Kind: "Issuer", Singular: "issuer", Namespaced: true})
	for _, document := range vaultCRDs {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &definition.Object); err != nil {
			t.Fatal(err)
		}
		server.Create(t, crds, definition)
	}
	file := writeTempFile(t, "crds.yaml", strings.Join(vaultCRDs, "---\n"))
	for name, source := range map[string][]string{"files": {"--crds", file}, "cluster": {"-s", server.URL}} {
		r := crdcache(t, append([]string{"suggest", "vaults"}, source...)...)
		if r.code != cli.ExitOK || !strings.HasSuffix(trimSpaces(r.out), trimSpaces(references)) {
			t.Errorf("%s: exit code %d, stdout\n%swant the end\n%s", name, r.code, r.out, references)
		}
		want := "warning: vaults.vault.io: no reference for .spec.caSecretRef, because the schema does not define the namespace of " +
			"the Secret; add one with namespace: NAME\n"
		if r.errOut != want {
			t.Errorf("%s: stderr is %q, want %q", name, r.errOut, want)
		}
		if v := crdcache(t, "validate", writeTempFile(t, "s.yaml", r.out), "--crds", file); v.code != cli.ExitOK {
			t.Errorf("%s: the suggested config is invalid:\n%s", name, v.errOut)
		}
	}
}
