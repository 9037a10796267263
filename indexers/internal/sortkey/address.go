package sortkey

import "net/netip"

// The keys of addresses and ranges of addresses begin with the length of an address, so that those of IPv4
// come first.

func addressKey(a netip.Addr) string {
	b := a.Unmap().AsSlice()
	return string(byte(len(b))) + string(b)
}

func encodeIP(text string) (string, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return "", false
	}
	return addressKey(a), true
}

func decodeIP(key string) (string, bool) {
	a, ok := addressOfKey(key)
	return a.String(), ok
}

func addressOfKey(key string) (netip.Addr, bool) {
	if key == "" || int(key[0]) != len(key)-1 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice([]byte(key[1:]))
}

// ParseRange reads a range of addresses. What an address has behind the prefix is dropped: 10.1.2.3/8 is
// 10.0.0.0/8.
func ParseRange(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, false
	}
	const mapped = 96 // bits of ::ffff:0:0/96, which has the addresses of IPv4
	if a := p.Addr(); a.Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-mapped)
	}
	return p.Masked(), true
}

// encodeCIDR adds the bits of the prefix to the first address.
func encodeCIDR(text string) (string, bool) {
	p, ok := ParseRange(text)
	if !ok || p.Addr().Is4In6() {
		return "", false
	}
	return addressKey(p.Addr()) + string([]byte{byte(p.Bits())}), true
}

func decodeCIDR(key string) (string, bool) {
	if key == "" {
		return "", false
	}
	last := len(key) - 1
	a, ok := addressOfKey(key[:last])
	if !ok {
		return "", false
	}
	p := netip.PrefixFrom(a, int(key[last]))
	return p.String(), p.IsValid() && p == p.Masked()
}

// Within gives the stretch of the keys of what is in a range of addresses, from low on and before high: of
// the addresses in it, for IP, or of the ranges that it has whole, itself among them, for CIDR. Other types
// have nothing in it.
func (t Type) Within(p netip.Prefix) (low, high string) {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for bit := p.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	switch t {
	case IP:
		return addressKey(first), addressKey(end) + "\x00"
	case CIDR:
		// Ranges that are larger and begin with the same address come before it; those that begin within it
		// are smaller.
		return addressKey(first) + string([]byte{byte(p.Bits())}), addressKey(end) + "\xff"
	}
	return "", ""
}
