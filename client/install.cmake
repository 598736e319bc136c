# Installing the library: headers, both libraries, the CMake package, pkg-config. Component `library`:
#   cmake --install build --component library --prefix /usr/local
include(CMakePackageConfigHelpers)
set(CUTWATER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cutwater)

set_target_properties(cutwater PROPERTIES EXPORT_NAME client)
set_target_properties(cutwater_static PROPERTIES EXPORT_NAME cutwater_static)
install(TARGETS cutwater EXPORT cutwaterTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(TARGETS cutwater_static EXPORT cutwaterStaticTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT cutwaterTargets NAMESPACE cutwater:: DESTINATION ${CUTWATER_PACKAGE_DIR}
  COMPONENT library)
install(EXPORT cutwaterStaticTargets NAMESPACE cutwater:: DESTINATION ${CUTWATER_PACKAGE_DIR}
  COMPONENT library)

configure_package_config_file(${PROJECT_SOURCE_DIR}/deploy/cmake/cutwaterConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/cutwaterConfig.cmake INSTALL_DESTINATION ${CUTWATER_PACKAGE_DIR})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cutwaterConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cutwaterConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cutwaterConfigVersion.cmake
  DESTINATION ${CUTWATER_PACKAGE_DIR} COMPONENT library)

# Written at install time, so that the prefix given there is in it.
install(CODE "
  set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(CUTWATER_PC_LIBDIR \"\\\${prefix}/${CMAKE_INSTALL_LIBDIR}\")
  set(CUTWATER_PC_INCLUDEDIR \"\\\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\")
  configure_file(\"${CMAKE_CURRENT_SOURCE_DIR}/cutwater.pc.in\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/cutwater.pc\" @ONLY)
" COMPONENT library)
