package discovery

import "testing"

// Another document must not be decoded as one without types, because informers would delete all objects.
func TestAggregatedDocumentOfAnotherKind(t *testing.T) {
	for _, body := range []string{`null`, `{}`, `{"kind":"Status","apiVersion":"v1"}`,
		`{"kind":"APIGroupList","groups":[]}`} {
		if groups, err := decodeAggregated([]byte(body)); err == nil {
			t.Errorf("%s was taken for a discovery document with the groups %v", body, groups)
		}
	}
	if _, err := decodeAggregated([]byte(`{"kind":"APIGroupDiscoveryList","items":[]}`)); err != nil {
		t.Errorf("an empty document: %v", err)
	}
}
