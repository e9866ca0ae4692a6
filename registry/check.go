package registry

// CatalogAt gives the catalog that a factory was built from, for asking what the
// judge would say to a statement over it ([Catalog.Check]). Nothing is planned
// before it is asked. It shares the factory's base, whose other users it waits for.
func CatalogAt(f *Factory, options CatalogOptions) *Catalog {
	return &Catalog{base: f.base, options: options, current: f}
}
