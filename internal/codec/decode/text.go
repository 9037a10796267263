package decode

// Text returns what a string stands for whose text, what is between the quotes in its JSON, is given.
func Text(inner []byte) ([]byte, error) {
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	p := &parser{data: quoted}
	text := p.quoted()
	if p.failure == "" && p.pos < len(quoted) {
		p.fail("data after the value")
	}
	return text, p.err()
}
