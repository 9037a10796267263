package sortkey_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// TestWithin verifies that Within agrees with net/netip.
func TestWithin(t *testing.T) {
	addresses := []string{"0.0.0.0", "9.255.255.255", "10.0.0.0", "10.0.0.1", "10.255.255.255", "11.0.0.0",
		"255.255.255.255", "::", "::1", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
	ranges := []string{"0.0.0.0/0", "10.0.0.0/7", "10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.0.0.1/32",
		"11.0.0.0/8", "::/0", "::/127", "2001:db8::/32", "2001:db8::1/128"}
	for _, text := range ranges {
		p, ok := sortkey.ParseRange(text)
		if !ok {
			t.Fatalf("ParseRange(%q) failed", text)
		}
		low, high := sortkey.IP.Within(p)
		for _, a := range addresses {
			key, _ := sortkey.IP.Key(a)
			if got, want := low <= key && key < high, p.Contains(netip.MustParseAddr(a)); got != want {
				t.Errorf("IP.Within(%s) contains %s = %v, want %v", p, a, got, want)
			}
		}
		low, high = sortkey.CIDR.Within(p)
		for _, other := range ranges {
			key, _ := sortkey.CIDR.Key(other)
			o := netip.MustParsePrefix(other).Masked()
			if got, want := low <= key && key < high, p.Overlaps(o) && o.Bits() >= p.Bits(); got != want {
				t.Errorf("CIDR.Within(%s) contains %s = %v, want %v", p, o, got, want)
			}
		}
	}
	if low, high := sortkey.Int.Within(netip.MustParsePrefix("::/0")); low != "" || high != "" {
		t.Errorf("Int.Within(::/0) = %q, %q; want empty bounds", low, high)
	}
}

// FuzzDuration checks that Go's durations are parsed like in Go, and that a day in front adds 24 hours.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"1h", "1d", "-1w1s", "0", ".5y", "1d2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := sortkey.ParseDuration(text)
		want, err := time.ParseDuration(text)
		if err == nil && (!ok || got != want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, ok, want)
		}
		if ok {
			if again, ok := sortkey.ParseDuration(got.String()); !ok || again != got {
				t.Errorf("ParseDuration(%q) = %v, but ParseDuration of this text = %v, %v", text, got, again,
					ok)
			}
		}
		if longer, more := sortkey.ParseDuration("1d" + text); more && ok && text[0] != '-' &&
			text[0] != '+' && text != "0" && longer != got+24*time.Hour {
			t.Errorf("ParseDuration(1d%s) = %v, want %v", text, longer, got+24*time.Hour)
		}
	})
}
