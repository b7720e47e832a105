# Writes the manifest of a library beside it: MANIFEST with the lines library and sha256 in front.
# usage: cmake -DLIBRARY=FILE.so -DMANIFEST=FILE -P WritePluginManifest.cmake
file(SHA256 "${LIBRARY}" sum)
cmake_path(GET LIBRARY FILENAME name)
cmake_path(REPLACE_EXTENSION LIBRARY LAST_ONLY ".ringmain-plugin" OUTPUT_VARIABLE to)
file(READ "${MANIFEST}" said)
file(WRITE "${to}" "library = ${name}\nsha256 = ${sum}\n${said}")
