package sortkey_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// orderedValues has values of each type in ascending order and canonical form.
var orderedValues = map[sortkey.Type][]string{
	sortkey.Any: {"", "\x00", "10", "2", "A", "a", "a\x00", "a\x00b", "ab", "é", "\U0001f600"},
	sortkey.Int: {"-9223372036854775808", "-11", "-2", "-1", "0", "1", "2", "10", "9007199254740993",
		"9223372036854775807"},
	sortkey.Number: {"-1e50", "-100", "-12", "-11.51", "-11.5", "-0.1", "-0.01", "-0.001", "0", "0.001",
		"0.01", "0.1", "0.11", "1", "1.5", "10", "10.01", "9007199254740992", "9007199254740993",
		"1e50", "1.5e50"},
	sortkey.Bool:     {"false", "true"},
	sortkey.Quantity: {"-1", "0", "0.1", "0.5", "1", "1000", "1024", "1073741824"},
	sortkey.Duration: {"-1h0m0s", "0s", "1ns", "1s", "1m0s", "2160h0m0s"},
	sortkey.Time: {"0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z",
		"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z", "2026-01-01T00:00:00.5Z",
		"2026-01-01T00:00:01Z", "9999-12-31T00:00:00Z"},
	sortkey.IP:   {"0.0.0.0", "10.0.0.2", "10.0.0.10", "192.0.2.1", "::", "::1", "2001:db8::1"},
	sortkey.Date: {"0000-01-01", "1969-12-31", "1970-01-01", "2026-01-31", "2026-02-01", "9999-12-31"},
	sortkey.CIDR: {"0.0.0.0/0", "9.255.255.255/32", "10.0.0.0/7", "10.0.0.0/8", "10.0.0.0/32",
		"10.0.0.1/32", "10.64.0.0/10", "11.0.0.0/8", "::/0", "::/128", "2001:db8::/32"},
	sortkey.SemVer: {"0.9.10", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1",
		"1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1",
		"1.2.0", "1.10.0", "2.0.0", "10.0.0"},
}

func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		typ        sortkey.Type
		text, want string
	}{
		{sortkey.String, "1.10", "1.10"},
		{sortkey.Int, "007", "7"}, {sortkey.Int, "+3", "3"}, {sortkey.Int, "3.0", "3"}, {sortkey.Int, "1e3",
			"1000"}, {sortkey.Int, "-0", "0"},
		{sortkey.Number, "2.50", "2.5"}, {sortkey.Number, "1E3", "1000"}, {sortkey.Number, "-0.0",
			"0"}, {sortkey.Number, ".5", "0.5"}, {sortkey.Number, "1e-30", "1e-30"},
		{sortkey.Quantity, "1Gi", "1073741824"}, {sortkey.Quantity, "100m", "0.1"}, {sortkey.Quantity, "1k",
			"1000"}, {sortkey.Quantity, "1e3", "1000"}, {sortkey.Quantity, "-500m", "-0.5"},
		{sortkey.Duration, "90m", "1h30m0s"}, {sortkey.Duration, "1d", "24h0m0s"}, {sortkey.Duration,
			"-1w2d1.5h", "-217h30m0s"}, {sortkey.Duration, "1y", "8760h0m0s"},
		{sortkey.Duration, "+.5d", "12h0m0s"},
		{sortkey.CIDR, "10.1.2.3/8", "10.0.0.0/8"}, {sortkey.CIDR, "::ffff:10.0.0.0/104",
			"10.0.0.0/8"}, {sortkey.CIDR, "2001:DB8::1/32", "2001:db8::/32"},
		{sortkey.Time, "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"}, {sortkey.Time,
			"2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"},
		{sortkey.Time, "2026-01-01", "2026-01-01T00:00:00Z"},
		{sortkey.IP, "::ffff:10.0.0.1", "10.0.0.1"}, {sortkey.IP, "2001:DB8:0::1", "2001:db8::1"},
		{sortkey.SemVer, "v1.30", "1.30.0"}, {sortkey.SemVer, "1.2.3+build.7", "1.2.3"}, {sortkey.SemVer,
			"v2-rc.1", "2.0.0-rc.1"},
	} {
		if got, ok := test.typ.Canonical(test.text); got != test.want || !ok {
			t.Errorf("%v.Canonical(%q) = %q, %v; want %q", test.typ, test.text, got, ok, test.want)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	for typ, texts := range map[sortkey.Type][]string{
		sortkey.Int:      {"", "x", "1.5", "9223372036854775808", "1e30", " 1", "0x10"},
		sortkey.Number:   {"", "x", "NaN", "Inf", "-", ".", "1e", "1e99999", "1.2.3", "--1", "-+1", "1_000"},
		sortkey.Bool:     {"", "yes", "True"},
		sortkey.Quantity: {"", "1 Gi", "Gi", "1gi"},
		sortkey.Duration: {"", "1", "-", "d", "1d1", "1day", "1D", "1d-1h", "1d 2h", "300y", "1..d",
			"107000d107000d"},
		sortkey.Date:   {"", "2026-1-31", "2026-02-30", "2026-01-31T00:00:00Z", "20260131", "10000-01-01"},
		sortkey.CIDR:   {"", "10.0.0.1", "10.0.0.0/33", "10.0/8", "10.0.0.0/-1", "fe80::%eth0/64", "host/8"},
		sortkey.Time:   {"", "2026-02-30", "2026-1-1", "now", "2026-13-01T00:00:00Z"},
		sortkey.IP:     {"", "10.0.0", "10.0.0.0/8", "fe80::1%eth0", "host"},
		sortkey.SemVer: {"", "1.2.3.4", "1.02", "v", "1.0.0-", "1.0.0-a..b", "1.0.0-01", "latest", "1.x"},
	} {
		for _, text := range texts {
			if key, ok := typ.Key(text); ok {
				t.Errorf("%v.Key(%q) = %q, want no key", typ, text, key)
			}
			if got, ok := typ.Canonical(text); ok {
				t.Errorf("%v.Canonical(%q) = %q, want no value", typ, text, got)
			}
		}
		if _, ok := sortkey.TypeNamed(typ.String()); !ok {
			t.Errorf("TypeNamed(%q) found no type", typ)
		}
		if _, ok := typ.Key(typ.Example()); !ok {
			t.Errorf("%v.Key(%q) of the type's own example returned no key", typ, typ.Example())
		}
	}
	if _, ok := sortkey.TypeNamed(""); ok {
		t.Error(`TypeNamed("") found a type`)
	}
}

// TestTuples verifies that keys of tuples are ordered part by part, and that a tuple's key begins with the
// key of its first parts.
func TestTuples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		b := make([]byte, random.IntN(4))
		for i := range b {
			b[i] = "\x00\x01\xfe\xffab/"[random.IntN(7)]
		}
		return string(b)
	}
	encode := func(parts []string) string {
		var b []byte
		for _, p := range parts {
			b = sortkey.AppendPart(b, p)
		}
		return string(b)
	}
	for range 20000 {
		a, b := []string{part(), part()}, []string{part(), part()}
		if got, want := strings.Compare(encode(a), encode(b)), slices.Compare(a, b); got != want {
			t.Fatalf("Compare of the keys of %q and %q = %d, want %d", a, b, got, want)
		}
		if back, ok := sortkey.Parts(encode(a)); !ok || cmp.Diff(a, back) != "" {
			t.Fatalf("Parts of the key of %q = %q, %v; want the same parts", a, back, ok)
		}
		prefix := encode(a[:1])
		if within := encode(b) >= prefix && encode(b) < sortkey.PrefixEnd(prefix); within != (a[0] == b[0]) {
			t.Fatalf("the key of %q is in the range of the prefix %q = %v, want %v", b, a[:1], within,
				!within)
		}
		if open := string(sortkey.AppendOpenPart(nil, a[0])); strings.HasPrefix(encode(b),
			open) != strings.HasPrefix(b[0], a[0]) {
			t.Fatalf("the key of %q begins with the open part %q = %v, want the opposite", b, open,
				strings.HasPrefix(encode(b), open))
		}
	}
	for _, key := range []string{"a", "\x00", "a\x00\x02", "\x00\x01b"} {
		if parts, ok := sortkey.Parts(key); ok {
			t.Errorf("Parts(%q) = %q, want no parts", key, parts)
		}
	}
}

// TestHugeNumbers verifies that numbers with huge exponents, which would take forever to format, are
// rejected.
func TestHugeNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"1e-40940966": false, "-1e-40940966": false, "1E+40940966": false, "1e99999999999999999999": false,
		"1" + strings.Repeat("0", 100000): false, "0." + strings.Repeat("0", 100000) + "1": false,
		"1e-8192": true, "1e3": true, "1E": true, "1Ei": true, "12E": true,
	} {
		if _, ok := sortkey.Quantity.Key(text); ok != want {
			t.Errorf("Quantity.Key(%.20s) succeeded = %v, want %v", text, ok, want)
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "",
		"a\x00": "a\x01"} {
		if got := sortkey.PrefixEnd(prefix); got != want {
			t.Errorf("PrefixEnd(%q) = %q, want %q", prefix, got, want)
		}
	}
}

// FuzzKey checks that keys decode to the same value, and that decoding never panics.
func FuzzKey(f *testing.F) {
	for typ, values := range orderedValues {
		for _, v := range values {
			f.Add(uint8(typ), v)
		}
	}
	f.Add(uint8(sortkey.Number), "-1e-4096")
	f.Add(uint8(sortkey.Quantity), "-1e-40940966")
	f.Add(uint8(sortkey.SemVer), "\x01\x31\x01\x30\x01\x30\x02a\x00\x00")
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		typ := sortkey.Type(int(n) % (1 + int(sortkey.CIDR)))
		typ.ValueOf(text)
		sortkey.Parts(text)
		key, ok := typ.Key(text)
		if !ok {
			return
		}
		value, ok := typ.ValueOf(key)
		if !ok {
			t.Fatalf("%v.ValueOf(%q), the key of %q, returned no value", typ, key, text)
		}
		if again, ok := typ.Key(value); !ok || again != key {
			t.Errorf("%v.Key(%q) = %q, but the key of its value %q is %q", typ, text, key, value, again)
		}
	})
}

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
