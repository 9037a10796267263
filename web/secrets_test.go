package web

import (
	"net/http"
	"strings"
	"testing"
)

// hasPassword reports whether a text contains the password, plain or encoded.
func hasPassword(text string) bool {
	return strings.Contains(text, password) || strings.Contains(text, encoded)
}

// TestSecretsAreRedacted requests a Secret in every possible way.
func TestSecretsAreRedacted(t *testing.T) {
	s := newFixture(t, Options{})
	const vault = "default/vault"
	tests := map[string]struct {
		path   string
		status int
	}{
		"type":     {address("type", "type", "secrets/v1"), 200},
		"object":   {address("object", "type", "secrets/v1", "key", vault), 200},
		"related":  {address("related", "type", "secrets/v1", "key", vault), 200},
		"dangling": {address("dangling", "type", "secrets/v1"), 200},
		"table":    {address("table", "type", "secrets/v1"), 200},
		"where": {address("table", "type", "secrets/v1", "query", `where("@.data.password=='`+
			encoded+`'")`), 403},
		"where, exists": {address("table", "type", "secrets/v1", "query",
			`namespace=default && !where(.data.password)`), 403},
		"index":         {address("table", "type", "secrets/v1", "query", "password="+encoded), 400},
		"index, prefix": {address("table", "type", "secrets/v1", "query", "password^=Y"), 400},
		"references":    {address("table", "type", "secrets/v1", "query", "dangling(leak)"), 403},
		"referred": {address("table", "type", "secrets/v1", "query",
			"refersTo(Environment.demo.crdcache.dev, "+encoded+")"), 403},
		"order by a path":   {address("table", "type", "secrets/v1", "sort", ".data.password"), 403},
		"order by an index": {address("table", "type", "secrets/v1", "sort", "password"), 403},
		"order by several":  {address("table", "type", "secrets/v1", "sort", "name, .data.password"), 403},
		"values":            {address("values", "type", "secrets/v1", "index", "password"), 400},
		"values of others": {address("values", "type", "secrets/v1", "index", "namespace", "query",
			"where(.data.password)"), 403},
		"complete":       {address("complete", "type", "secrets/v1", "query", "password="), 200},
		"complete, term": {address("complete", "type", "secrets/v1", "query", ""), 200},
		"shared index": {address("table", "type", "secrets/v1", "query",
			"secrets/password="+encoded), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.get(tt.path, tt.status); hasPassword(strings.ReplaceAll(got, `password='`+encoded, "")) &&
				tt.status == 200 {
				t.Errorf("response: %s", got)
			}
		})
	}
	table := ask[tableAnswer](s, "table", "type", "secrets/v1", "query", "namespace=default", "sort", "age")
	if got := s.get(address("rows", "type", "secrets/v1", "table", table.Table, "from", "0"),
		200); hasPassword(got) || !strings.Contains(got, vault) {
		t.Errorf("rows are %s", got)
	}
	if got := s.get(address("related", "type", "environments.demo.crdcache.dev/v1", "key", "production-eu"),
		200); strings.Contains(got, "vault") {
		t.Errorf("a reference of a Secret is in %s", got)
	}

	events := s.listen("changes", "1")
	await(t, events, "types", anyText)
	s.update(secrets, "default", "vault", `{"stringData":null,"data":{"password":"`+encoded[:4]+encoded+`"}}`)
	data := await(t, events, "changes", func(data string) bool { return strings.Contains(data, vault) })
	if hasPassword(data) || !strings.Contains(data, `"label":".data.password"`) ||
		!strings.Contains(data, "redacted-") {
		t.Errorf("the change is %s", data)
	}
}

// TestSecretsOnRequest verifies that with ShowSecrets, the same responses contain the values.
func TestSecretsOnRequest(t *testing.T) {
	s := newFixture(t, Options{ShowSecrets: true})
	for name, path := range map[string]string{
		"object": address("object", "type", "secrets/v1", "key", "default/vault"),
		"values": address("values", "type", "secrets/v1", "index", "password"),
	} {
		if got := s.get(path, http.StatusOK); !hasPassword(got) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if found := ask[tableAnswer](s, "table", "type", "secrets/v1", "query",
		"password="+encoded); found.Total != 1 {
		t.Errorf("%d objects found", found.Total)
	}
}
