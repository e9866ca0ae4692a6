package ddl

import "github.com/viewkeeper/viewkeeper"

// drop reads what follows DROP.
func (p *parser) drop() (*viewkeeper.Drop, *viewkeeper.Error) {
	d := &viewkeeper.Drop{Kind: viewkeeper.KindView}
	if p.accept("materialized") {
		d.Kind = viewkeeper.KindMaterialized
	}
	if !p.accept("view") {
		return nil, p.notAView("DROP")
	}
	d.IfExists = p.accept("if", "exists")
	for {
		name, at, err := p.nameAt("the name of a view")
		if err != nil {
			return nil, err
		}
		d.Names = append(d.Names, name)
		d.Offsets = append(d.Offsets, at)
		if !p.acceptOp(",") {
			break
		}
	}
	if len(d.Names) == 1 {
		p.name = d.Names[0]
	}
	if d.Cascade = p.accept("cascade"); !d.Cascade {
		p.accept("restrict")
	}
	return d, nil
}
