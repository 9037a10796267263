package cli_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// labelledType is a type of testdata/references.yaml.
type labelledType struct {
	Set, Kind, Scope string
	Fields           map[string]any
	References       map[string]string
}

// schemaOf returns the schema of the fields of a labelled type.
func schemaOf(fields any) map[string]any {
	switch fields := fields.(type) {
	case []any:
		return map[string]any{"type": "array", "items": schemaOf(fields[0])}
	case map[string]any:
		properties := map[string]any{}
		for name, field := range fields {
			properties[name] = schemaOf(field)
		}
		return map[string]any{"type": "object", "properties": properties}
	case string:
		if fields == "i" {
			return map[string]any{"type": "integer"}
		}
		fields, nameOf, isDescribed := strings.Cut(fields, "#")
		kinds, value, hasDefault := strings.Cut(fields, "=")
		s := map[string]any{"type": "string"}
		if hasDefault {
			s["default"] = value
		}
		if isDescribed {
			s["description"] = "Name of the " + nameOf + "."
		}
		if _, enum, ok := strings.Cut(kinds, "|"); ok {
			s["enum"] = strings.Split(enum, "|")
		}
		return s
	}
	return map[string]any{"type": "object"}
}

func crdOf(name string, labelled labelledType) string {
	plural, group, _ := strings.Cut(name, ".")
	document, _ := yaml.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"group": group, "scope": labelled.Scope,
			"names": map[string]any{"plural": plural, "kind": labelled.Kind}, "versions": []any{map[string]any{"name": "v1",
				"served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schemaOf(labelled.Fields)}}}}})
	return string(document) + "---\n"
}

// suggestedTargets returns the targets of the suggested references by type and path: a kind, or * for one
// that is read from the object.
func suggestedTargets(t *testing.T, config string) map[string]map[string]string {
	t.Helper()
	var parsed struct {
		Spec struct {
			Resources []struct {
				Match   struct{ Group, Resource string }
				Indexes []any

				References []struct {
					Each string
					To   struct{ Kind, KindPath, NamePath string }
				}
			}
		}
	}
	must(t, yaml.Unmarshal([]byte(config), &parsed))
	out := map[string]map[string]string{}
	for _, r := range parsed.Spec.Resources {
		found := map[string]string{}
		out[r.Match.Resource+"."+r.Match.Group] = found
		for _, reference := range r.References {
			target := reference.To.Kind
			if reference.To.KindPath != "" {
				target = "*"
			}
			found[reference.Each+strings.TrimPrefix(reference.To.NamePath, "@")] = target
		}
		if len(r.Indexes) > 12 {
			t.Errorf("%s has %d indexes, want at most 12", r.Match.Resource, len(r.Indexes))
		}
	}
	return out
}

// TestSuggestedReferences measures the suggested references of public CRDs against references that people
// have labelled: most are found, and nearly all suggestions are right.
func TestSuggestedReferences(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	data, err := os.ReadFile("testdata/references.yaml")
	must(t, err)
	labelled := map[string]labelledType{}
	must(t, yaml.Unmarshal(data, &labelled))
	arguments, documents := []string{"suggest"}, strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(labelled)) {
		documents.WriteString(crdOf(name, labelled[name]))
		if labelled[name].Set != "" {
			arguments = append(arguments, name)
		}
	}
	r := crdcache(t, append(arguments, "--crds", writeTempFile(t, "crds.yaml", documents.String()))...)
	if r.code != cli.ExitOK {
		t.Fatal(r.errOut)
	}
	suggested := suggestedTargets(t, r.out)
	for _, set := range []string{"develop", "measure", "unseen", "fresh", "blind"} {
		types, found, right, wanted := 0, 0, 0, 0
		for _, name := range slices.Sorted(maps.Keys(labelled)) {
			l := labelled[name]
			if l.Set != set {
				continue
			}
			types++
			for path, target := range l.References {
				if target == "?" {
					delete(suggested[name], path)
					continue
				}
				wanted++
				if suggested[name][path] != target {
					t.Logf("%s: %s to %s is not suggested", name, path, target)
				}
			}
			for path, target := range suggested[name] {
				found++
				if l.References[path] == target {
					right++
				} else {
					t.Logf("%s: %s is suggested to refer to %s, not to %q", name, path, target, l.References[path])
				}
			}
		}
		recall, precision := float64(right)/float64(wanted), float64(right)/float64(found)
		t.Logf("%s: %d types, recall %.0f %% of %d, precision %.1f %% of %d", set, types, 100*recall, wanted,
			100*precision, found)
		if types < 10 || recall < 0.7 || precision < 0.98 {
			t.Errorf("%s: recall %.2f, want 0.70; precision %.3f, want 0.98", set, recall, precision)
		}
	}
}

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
		must(t, yaml.Unmarshal([]byte(document), &definition.Object))
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
