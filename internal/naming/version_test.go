package naming

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// FuzzCompareVersions compares CompareVersions with apimachinery's CompareResourceVersion.
func FuzzCompareVersions(f *testing.F) {
	for _, pair := range [][2]string{
		{"1", "1"}, {"9", "10"}, {"10", "9"}, {"0", "1"}, {"1", ""}, {"01", "1"}, {"-1", "1"}, {"newest",
			"1"}, {"184467440737095516160", "2"}, {"12", "21"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want, wantErr := resourceversion.CompareResourceVersion(a, b)
		got, err := CompareVersions(a, b)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("CompareVersions(%q, %q) = %d, %v; want %d, %v", a, b, got, err, want, wantErr)
		}
		if older := err == nil && got < 0; IsOlder(a, b) != older {
			t.Errorf("IsOlder(%q, %q) = %v, want %v", a, b, !older, older)
		}
	})
}
