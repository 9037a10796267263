package sortkey

import "net/netip"

// Keys of addresses and address ranges begin with the length of the address, so that IPv4 comes first.

func addressKey(a netip.Addr) string {
	b := a.Unmap().AsSlice()
	return string(byte(len(b))) + string(b)
}

func parseIP(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Zone() == ""
}

func addressOfKey(key string) (netip.Addr, bool) {
	if key == "" || int(key[0]) != len(key)-1 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice([]byte(key[1:]))
}

// ParseRange parses an address range. Bits behind the prefix are cleared: 10.1.2.3/8 is 10.0.0.0/8.
func ParseRange(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, false
	}
	const mappedPrefixBits = 96 // length of ::ffff:0:0/96, the IPv4-mapped prefix
	if a := p.Addr(); a.Is4In6() && p.Bits() >= mappedPrefixBits {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-mappedPrefixBits)
	}
	return p.Masked(), true
}

// encodeCIDR appends the prefix length to the first address.
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

// Within returns the range of keys, low <= key < high, of the addresses (IP) or the contained ranges (CIDR)
// within a range, including itself. It is empty for other types.
func (t Type) Within(prefix netip.Prefix) (low, high string) {
	first := prefix.Masked().Addr()
	last := first.AsSlice()
	for bit := prefix.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	switch t {
	case IP:
		return addressKey(first), addressKey(end) + "\x00"
	case CIDR:
		// larger ranges with the same first address come before; ranges that begin inside are smaller
		return addressKey(first) + string([]byte{byte(prefix.Bits())}), addressKey(end) + "\xff"
	}
	return "", ""
}
