package web

import (
	"net/http"
	"strings"
	"testing"
)

// hasPassword reports whether a text contains the password, plain or encoded.
func hasPassword(text string) bool {
	return strings.Contains(text, password) || strings.Contains(text, encodedPassword)
}

// TestSecretsAreRedacted requests a Secret in every possible way.
func TestSecretsAreRedacted(t *testing.T) {
	s := newFixture(t, Options{})
	const vault = "default/vault"
	tests := map[string]struct {
		path   string
		status int
	}{
		"type":     {pageURL("type", "type", "secrets/v1"), 200},
		"object":   {pageURL("object", "type", "secrets/v1", "key", vault), 200},
		"related":  {pageURL("related", "type", "secrets/v1", "key", vault), 200},
		"dangling": {pageURL("dangling", "type", "secrets/v1"), 200},
		"table":    {pageURL("table", "type", "secrets/v1"), 200},
		"where": {pageURL("table", "type", "secrets/v1", "query", `where("@.data.password=='`+
			encodedPassword+`'")`), 403},
		"where, exists": {pageURL("table", "type", "secrets/v1", "query",
			`namespace=default && !where(.data.password)`), 403},
		"index":         {pageURL("table", "type", "secrets/v1", "query", "password="+encodedPassword), 400},
		"index, prefix": {pageURL("table", "type", "secrets/v1", "query", "password^=Y"), 400},
		"references":    {pageURL("table", "type", "secrets/v1", "query", "dangling(leak)"), 403},
		"referred": {pageURL("table", "type", "secrets/v1", "query",
			"refersTo(Environment.demo.crdcache.dev, "+encodedPassword+")"), 403},
		"order by a path":   {pageURL("table", "type", "secrets/v1", "sort", ".data.password"), 403},
		"order by an index": {pageURL("table", "type", "secrets/v1", "sort", "password"), 403},
		"order by several":  {pageURL("table", "type", "secrets/v1", "sort", "name, .data.password"), 403},
		"values":            {pageURL("values", "type", "secrets/v1", "index", "password"), 400},
		"values of others": {pageURL("values", "type", "secrets/v1", "index", "namespace", "query",
			"where(.data.password)"), 403},
		"complete":       {pageURL("complete", "type", "secrets/v1", "query", "password="), 200},
		"complete, term": {pageURL("complete", "type", "secrets/v1", "query", ""), 200},
		"shared index": {pageURL("table", "type", "secrets/v1", "query",
			"secrets/password="+encodedPassword), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.get(tt.path, tt.status); hasPassword(strings.ReplaceAll(got, `password='`+encodedPassword, "")) &&
				tt.status == 200 {
				t.Errorf("the response contains the password: %s", got)
			}
		})
	}
	table := getJSON[tableAnswer](s, "table", "type", "secrets/v1", "query", "namespace=default", "sort", "age")
	if got := s.get(pageURL("rows", "type", "secrets/v1", "table", table.Table, "from", "0"),
		200); hasPassword(got) || !strings.Contains(got, vault) {
		t.Errorf("the rows are %s, want the Secret without its password", got)
	}
	if got := s.get(pageURL("related", "type", "environments.demo.crdcache.dev/v1", "key", "production-eu"),
		200); strings.Contains(got, "vault") {
		t.Errorf("a reference of a Secret is in %s", got)
	}

	events := s.openStream("changes", "1")
	awaitEvent(t, events, "types", anyText)
	s.update(secrets, "default", "vault", `{"stringData":null,"data":{"password":"`+encodedPassword[:4]+encodedPassword+`"}}`)
	data := awaitEvent(t, events, "changes", func(data string) bool { return strings.Contains(data, vault) })
	if hasPassword(data) || !strings.Contains(data, `"label":".data.password"`) ||
		!strings.Contains(data, "redacted-") {
		t.Errorf("the change is %s, want a redacted password", data)
	}
}

// TestSecretsOnRequest verifies that with ShowSecrets, the same responses contain the values.
func TestSecretsOnRequest(t *testing.T) {
	s := newFixture(t, Options{ShowSecrets: true})
	for name, path := range map[string]string{
		"object": pageURL("object", "type", "secrets/v1", "key", "default/vault"),
		"values": pageURL("values", "type", "secrets/v1", "index", "password"),
	} {
		if got := s.get(path, http.StatusOK); !hasPassword(got) {
			t.Errorf("%s: the response lacks the password: %s", name, got)
		}
	}
	if found := getJSON[tableAnswer](s, "table", "type", "secrets/v1", "query",
		"password="+encodedPassword); found.Total != 1 {
		t.Errorf("a query for the password finds %d objects, want 1", found.Total)
	}
}
