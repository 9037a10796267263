package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestIdentityDependsOnSeedAndIndexAlone(t *testing.T) {
	make := func(seed uint64, i int) map[string]any {
		id := newIdentity(seed, i, 4)
		return buildObject(id, certificates{size: Small}.content(id)).Object
	}
	if diff := cmp.Diff(make(1, 7), make(1, 7)); diff != "" {
		t.Errorf("the same object differs:\n%s", diff)
	}
	seen := map[string]bool{}
	uid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for seed := range uint64(3) {
		for i := range 1000 {
			id := newIdentity(seed, i, 4)
			if !uid.MatchString(id.uid) {
				t.Fatalf("%s is no version 4 UUID", id.uid)
			}
			seen[id.uid], seen[id.name] = true, true
		}
	}
	if len(seen) != 6000 {
		t.Errorf("%d different names and uids, want 6000", len(seen))
	}
}

func TestCertificatesVary(t *testing.T) {
	shapes, issuers := map[string]int{}, map[any]int{}
	for i := range 1000 {
		id := newIdentity(1, i, 4)
		c := certificates{size: Small}.content(id)
		shapes[c.shape]++
		issuers[c.body["spec"].(map[string]any)["issuerRef"].(map[string]any)["name"]]++
		if name := c.body["spec"].(map[string]any)["commonName"].(string); len(name) > 64 {
			t.Errorf("common name %q is longer than X.509 allows", name)
		}
	}
	if shapes["ready"] < 850 || shapes["unready"] < 20 || len(issuers) != 5 {
		t.Errorf("shapes %v, issuers %v", shapes, issuers)
	}
}

// fields returns the set of paths of a value, without the content of lists.
func fields(prefix string, value any, into map[string]bool) map[string]bool {
	object, ok := value.(map[string]any)
	if !ok {
		into[prefix] = true
	}
	for name, field := range object {
		fields(prefix+"."+name, field, into)
	}
	return into
}

func TestOneShapeHasOneSetOfFields(t *testing.T) {
	for _, size := range []Size{Small, Large} {
		byShape := map[string]map[string]bool{}
		for i := range 500 {
			id := newIdentity(3, i, 4)
			c := certificates{size: size}.content(id)
			got := fields("", map[string]any{"a": c.annotations, "l": c.labels, "b": c.body},
				map[string]bool{})
			if want, known := byShape[c.shape]; known {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, shape %s:\n%s", size, c.shape, diff)
				}
			}
			byShape[c.shape] = got
		}
	}
}

func TestEncodeKeepsServerFields(t *testing.T) {
	stored := `{"apiVersion":"cert-manager.io/v1","kind":"Certificate",
		"metadata":{"name":"sample","uid":"x","managedFields":[
			{"manager":"controller","operation":"Update","subresource":"status","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}},
			{"manager":"helm","operation":"Update","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
		"spec":{"secretName":"sample","privateKey":{"encoding":"PKCS1","size":1}}}`
	tmpl, err := parseTemplate([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	id := newIdentity(1, 1, 4)
	data, err := tmpl.encode(id, objectContent{body: map[string]any{
		"spec": map[string]any{"secretName": "mine", "privateKey": map[string]any{"size": int64(2048)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{
			"name": id.name, "namespace": id.namespace, "uid": id.uid, "generation": 1.0,
			"creationTimestamp": timestamp(id.created),
			"managedFields": []any{
				map[string]any{"manager": "helm", "operation": "Update", "time": timestamp(id.created),
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}}},
				map[string]any{"manager": "controller", "operation": "Update", "subresource": "status",
					"time": timestamp(id.created.Add(7e9)), "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:status": map[string]any{}}},
			},
		},
		"spec": map[string]any{"secretName": "mine", "privateKey": map[string]any{"encoding": "PKCS1",
			"size": 2048.0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFillNeedsTheCRDs(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := Fill(t.Context(), &rest.Config{Host: server.URL}, nil,
		FillOptions{Count: 1, Namespaces: 1, Size: Small})
	if err == nil || !strings.Contains(err.Error(), "load cert-manager's CRDs first") {
		t.Errorf("the error has no remedy: %v", err)
	}
}
