package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crdcache/crdcache/internal/naming"
)

func TestParseQuantity(t *testing.T) {
	for _, text := range []string{"0", "64Mi", "1E", "1e3", "-5m", "+.5", "5.", "1e-8192"} {
		want := resource.MustParse(text)
		if got, err := naming.ParseQuantity(text); err != nil || got.Cmp(want) != 0 {
			t.Errorf("ParseQuantity(%q) = %s, %v; want %s", text, got.String(), err, want.String())
		}
	}
	for _, text := range []string{"", "M", "Mi", "-", "+Gi", ".", "E", "lots", "1 GB", "0x1", "1e-40000000",
		"1e99999999999999999999", strings.Repeat("1", 10000)} {
		if got, err := naming.ParseQuantity(text); err == nil {
			t.Errorf("ParseQuantity(%.20q) = %s, want an error", text, got.String())
		}
	}
}
