package query

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// searchedKeys looks at all values of an index: what it costs follows their number, and not that of the objects.
func (c *compiler) searchedKeys(index access, q *comparison) ([]string, error) {
	test, err := index.searched(q)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	look := func(key string, _ int) bool {
		if (key != indexers.Null || index.composite()) && test(index.show(key)) {
			keys = append(keys, key)
		}
		return c.meter.work(1)
	}
	if low, high, ok := index.addresses(q); ok {
		index.Keys(low, high, false, look)
	} else {
		index.each(look)
	}
	if c.meter.ended() {
		return nil, c.meter.err
	}
	return keys, nil
}

// searched gives what is tested of each value.
func (a access) searched(q *comparison) (func(value string) bool, error) {
	operand := q.values[0].parts[0]
	if q.op == opWithin {
		return a.within(operand)
	}
	if a.declared != nil {
		for _, typ := range a.declared.Types() {
			if typ != "" && typ != sortkey.String.String() && !a.composite() {
				return nil, &indexers.OperandError{Index: a.name, Message: fmt.Sprintf("a value of type %s has no text to search in; compare it, or use a range", typ)}
			}
		}
	}
	if q.op == opMatches {
		expression, err := regexp.Compile(operand)
		if err != nil {
			return nil, fmt.Errorf("this is not a regular expression: %w", err)
		}
		return expression.MatchString, nil
	}
	operand = a.folded(operand)
	return func(value string) bool { return strings.Contains(value, operand) }, nil
}

// folded gives a part of a text in the case that the index has it in. Blanks at its ends stay, which may be within the
// whole text.
func (a access) folded(text string) string {
	if a.declared == nil || a.composite() {
		return text
	}
	const guard = "."
	guarded := a.declared.Operand(0, guard+text+guard, false)
	return strings.TrimSuffix(strings.TrimPrefix(guarded, guard), guard)
}

var errNoPrefix = errors.New("addresses are searched by a range of them; write one such as 10.0.0.0/8 or 2001:db8::/32")

// parsePrefix reads a range of addresses; those of IPv4 within IPv6 are of IPv4.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, errNoPrefix
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// within tests addresses, and ranges of them.
func (a access) within(operand string) (func(value string) bool, error) {
	typ := ""
	if a.declared != nil && !a.composite() {
		typ = a.declared.Types()[0]
	}
	if typ != "ip" && typ != "cidr" {
		return nil, &indexers.OperandError{Index: a.name, Message: "it has no addresses to be within a range; declare type: ip or cidr"}
	}
	wide, err := parsePrefix(operand)
	if err != nil {
		return nil, err
	}
	return func(value string) bool {
		if address, err := netip.ParseAddr(value); err == nil {
			return wide.Contains(address.Unmap())
		}
		narrow, err := parsePrefix(value)
		return err == nil && narrow.Bits() >= wide.Bits() && wide.Contains(narrow.Addr())
	}, nil
}

// addresses gives the stretch of a sorted index of addresses that holds all of a range.
func (a access) addresses(q *comparison) (low, high string, ok bool) {
	if q.op != opWithin || !a.sorted() || a.declared.Types()[0] != "ip" {
		return "", "", false
	}
	wide, err := parsePrefix(q.values[0].parts[0])
	if err != nil {
		return "", "", false
	}
	last := wide.Addr().AsSlice()
	for bit := wide.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	end, _ := netip.AddrFromSlice(last)
	low, _ = sortkey.IP.Key(wide.Addr().String())
	high, _ = sortkey.IP.Key(end.String())
	return low, high + "\x00", true
}
